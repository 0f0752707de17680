import { createHash } from 'node:crypto';
import { fieldType } from '../definition/field-types.js';
import type { OrderColumn } from '../definition/resource.js';
import type { Key } from '../definition/row-serializer.js';

const digestBytes = 12;

/**
 * What a cursor belongs to: its workspace, resource and filters, as one string. A cursor carries a digest of it, so it
 * can be used nowhere else and damage is noticed. The digest is no signature and needs no secret: a forged cursor seeks
 * to another place in the forger's own workspace, which `page` does too.
 */
export function cursorContext(workspace: string, resource: string, filters: Readonly<Record<string, string>>): string {
  return JSON.stringify([workspace, resource, Object.entries(filters).sort(([a], [b]) => (a < b ? -1 : 1))]);
}

/** base64url of the key and the digest; a null key is the beginning of the list. */
export function encodeCursor(context: string, key: Key | null): string {
  const payload = Buffer.from(key === null ? '' : `${key[0]}\n${key[1]}`);
  return Buffer.concat([digest(context, payload), payload]).toString('base64url');
}

/** The key a cursor carries, or undefined when it is damaged or belongs elsewhere. */
export function decodeCursor(context: string, cursor: string, order: readonly OrderColumn[]): Key | null | undefined {
  const bytes = Buffer.from(cursor, 'base64url');
  if (bytes.toString('base64url') !== cursor || bytes.length < digestBytes) return undefined;
  const payload = bytes.subarray(digestBytes);
  if (!digest(context, payload).equals(bytes.subarray(0, digestBytes))) return undefined;
  if (payload.length === 0) return null;
  const parts = payload.toString('utf8').split('\n');
  const fits =
    parts.length === order.length && order.every(({ type }, i) => fieldType(type).isPrinted?.(parts[i] as string));
  return fits ? (parts as unknown as Key) : undefined;
}

function digest(context: string, payload: Buffer): Buffer {
  return createHash('sha256').update(context).update('\0').update(payload).digest().subarray(0, digestBytes);
}
