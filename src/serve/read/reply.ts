import { hash } from 'node:crypto';
import type { ReadContent } from '../../postgres/read-register.js';
import type { TagColumns } from '../../resource/definition/compiled.js';

export interface PageSize {
  readonly perPage: number;
  rows: number | null;
}

export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** It is null for none (304). A piece's bytes may be overwritten when the next piece is requested. */
  readonly body: string | Buffer | AsyncGenerator<Buffer> | null;
  /** Must be called when the response is closed. */
  readonly release?: () => void;
  readonly page?: PageSize;
  /** The register of reads gets it; absent: no record. */
  readonly shown?: ReadContent;
  /** The reply waited so long for the database before the first byte. */
  readonly databaseMs: number;
}

export function dataAsOf(asOfMs: number | null): Record<string, string> {
  return asOfMs === null ? {} : { 'Data-As-Of': new Date(asOfMs).toISOString() };
}

export interface EntityTag {
  readonly weak: boolean;
  readonly opaque: string;
}

/** Adds a digest of the JSON columns to the version. It is the same from replica, primary, detail and write. */
export function etagOf(textAt: (at: number) => string | null, { versionAt, documentsAt }: TagColumns): string {
  const version = `v${textAt(versionAt)}`;
  if (documentsAt.length === 0) return `"${version}"`;
  const digest = hash('sha256', JSON.stringify(documentsAt.map(textAt)), 'base64url');
  return `"${version}-${digest.slice(0, 16)}"`;
}

/** Is undefined if the header is neither tags nor `*` (RFC 9110 §8.8.3, §13.1; §5.6.1 allows empty elements). */
export function parseEntityTags(header: string): readonly EntityTag[] | '*' | undefined {
  if (header.trim() === '*') return '*';
  const tags: EntityTag[] = [];
  let ahead = header;
  while (ahead !== '') {
    const match = /^[ \t]*(?:(W\/)?"([\x21\x23-\x7e\x80-\xff]*)"[ \t]*)?(?:,|$)/.exec(ahead);
    if (match === null) return undefined;
    if (match[2] !== undefined) tags.push({ weak: match[1] !== undefined, opaque: match[2] });
    ahead = ahead.slice(match[0].length);
  }
  return tags.length > 0 ? tags : undefined;
}

/** Weak tags never match (RFC 9110 §8.8.3.2). */
export function matchesStrongly(tags: readonly EntityTag[] | '*', etag: string): boolean {
  return tags === '*' || tags.some(({ weak, opaque }) => !weak && `"${opaque}"` === etag);
}

export function matchesWeakly(tags: readonly EntityTag[] | '*', etag: string): boolean {
  return tags === '*' || tags.some(({ opaque }) => `"${opaque}"` === etag);
}
