import { hash } from 'node:crypto';
import type { TagColumns } from '../resource/compiled.js';

export interface EntityTag {
  readonly isWeak: boolean;
  readonly opaque: string;
}

/** Adds a digest of the JSON columns to the version. Replica, primary, single record and write give the same tag. */
export function makeEtag(textAt: (at: number) => string | null, { versionAt, documentsAt }: TagColumns): string {
  const version = `v${textAt(versionAt)}`;
  if (documentsAt.length === 0) return `"${version}"`;
  const digest = hash('sha256', JSON.stringify(documentsAt.map(textAt)), 'base64url');
  return `"${version}-${digest.slice(0, 16)}"`;
}

/** Returns undefined if the header is neither tags nor `*` (RFC 9110 §8.8.3, §13.1; §5.6.1 allows empty elements). */
export function parseEntityTags(header: string): readonly EntityTag[] | '*' | undefined {
  if (header.trim() === '*') return '*';
  const tags: EntityTag[] = [];
  let ahead = header;
  while (ahead !== '') {
    const match = /^[ \t]*(?:(W\/)?"([\x21\x23-\x7e\x80-\xff]*)"[ \t]*)?(?:,|$)/.exec(ahead);
    if (match === null) return undefined;
    if (match[2] !== undefined) tags.push({ isWeak: match[1] !== undefined, opaque: match[2] });
    ahead = ahead.slice(match[0].length);
  }
  return tags.length > 0 ? tags : undefined;
}

/** Returns false for weak tags, which never match (RFC 9110 §8.8.3.2). */
export function matchesStrongly(tags: readonly EntityTag[] | '*', etag: string): boolean {
  return tags === '*' || tags.some(({ isWeak, opaque }) => !isWeak && `"${opaque}"` === etag);
}

export function matchesWeakly(tags: readonly EntityTag[] | '*', etag: string): boolean {
  return tags === '*' || tags.some(({ opaque }) => `"${opaque}"` === etag);
}
