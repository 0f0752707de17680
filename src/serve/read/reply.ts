import { hash } from 'node:crypto';
import type { TagColumns } from '../../resource/definition/compiled.js';

/** The size of a list's page, for the log and the metrics. */
export interface PageSize {
  readonly perPage: number;
  /** Null until the page is complete. */
  rows: number | null;
}

/** The answer to a read or write, before HTTP: no header of the transport, no Koa. */
export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /**
   * The whole body, or its pieces as they become available; null for none (304). The bytes of a piece may be overwritten
   * as soon as the next piece is requested.
   */
  readonly body: string | Buffer | AsyncGenerator<Buffer> | null;
  /** Gives the memory of the body back; to be called when the response is closed. */
  readonly release?: () => void;
  /** The size of a list's page. */
  readonly page?: PageSize;
  /** Time spent waiting for the database before the first byte, in milliseconds. */
  readonly databaseMs: number;
}

/** `Data-As-Of`, or nothing when it is not known. */
export function dataAsOf(asOfMs: number | null): Record<string, string> {
  return asOfMs === null ? {} : { 'Data-As-Of': new Date(asOfMs).toISOString() };
}

/** An entity tag of If-Match or If-None-Match. */
export interface EntityTag {
  readonly weak: boolean;
  readonly opaque: string;
}

/**
 * The strong ETag of a row: its version, with a digest of its JSON columns where it has any. The same from replica, primary, detail
 * read and write response.
 */
export function etagOf(textAt: (at: number) => string | null, { versionAt, documentsAt }: TagColumns): string {
  const version = `v${textAt(versionAt)}`;
  if (documentsAt.length === 0) return `"${version}"`;
  const digest = hash('sha256', JSON.stringify(documentsAt.map(textAt)), 'base64url');
  return `"${version}-${digest.slice(0, 16)}"`;
}

/** The tags of a header, '*', or undefined when the header is neither (RFC 9110 §8.8.3, §13.1; empty list elements are allowed, §5.6.1). */
export function parseEntityTags(header: string): readonly EntityTag[] | '*' | undefined {
  if (header.trim() === '*') return '*';
  const tags: EntityTag[] = [];
  let rest = header;
  while (rest !== '') {
    const match = /^[ \t]*(?:(W\/)?"([\x21\x23-\x7e\x80-\xff]*)"[ \t]*)?(?:,|$)/.exec(rest);
    if (match === null) return undefined;
    if (match[2] !== undefined) tags.push({ weak: match[1] !== undefined, opaque: match[2] });
    rest = rest.slice(match[0].length);
  }
  return tags.length > 0 ? tags : undefined;
}

/** Strong comparison (RFC 9110 §8.8.3.2): weak tags never match. */
export function matchesStrongly(tags: readonly EntityTag[] | '*', etag: string): boolean {
  return tags === '*' || tags.some(({ weak, opaque }) => !weak && `"${opaque}"` === etag);
}

/** Weak comparison, for If-None-Match. */
export function matchesWeakly(tags: readonly EntityTag[] | '*', etag: string): boolean {
  return tags === '*' || tags.some(({ opaque }) => `"${opaque}"` === etag);
}
