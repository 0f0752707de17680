import { hash } from 'node:crypto';
import { fieldType } from '../definition/field-types.js';
import type { Direction, OrderColumn } from '../definition/resource.js';
import type { Key } from '../definition/row-serializer.js';
import type { Caller } from '../postgres/statement.js';

/** The end of a page: the next page starts after its key, on a server that is at least as current as this page was. */
export interface PageEnd {
  /** Key of the last row; null is the beginning of the list. */
  readonly key: Key | null;
  /** The moment up to which the page was known to be current, epoch milliseconds by the gateway's clock; null when unknown. */
  readonly asOfMs: number | null;
}

/** The list that a page belongs to. */
export interface PageSeries {
  readonly caller: Caller;
  /** Workspace, resource, filters and order: see `cursorContext`. */
  readonly context: string;
  readonly perPage: number;
}

/**
 * Workspace, resource, and filters with the order unless it is ascending, as one string. A cursor carries a digest of it, so that a damaged cursor, or
 * one of another list, is noticed. The digest is no signature and needs no secret: a forged cursor seeks to another place in
 * the forger's own workspace, which `page` does too, and its moment makes the forger's own request wait a little.
 */
export function cursorContext(workspace: string, resource: string, filters: Readonly<Record<string, string>>): string {
  return JSON.stringify([workspace, resource, Object.entries(filters).sort(([a], [b]) => (a < b ? -1 : 1))]);
}

/** base64url of a digest and the parts: moment, and the values of the key unless it is null. No text of PostgreSQL holds NUL. */
export function encodeCursor(context: string, { key, asOfMs }: PageEnd): string {
  return encodeParts(context, [String(asOfMs ?? ''), ...(key ?? [])]);
}

/** base64url of a digest over context and parts, and the parts. */
export function encodeParts(context: string, parts: readonly string[]): string {
  const payload = Buffer.from(parts.join('\0'));
  return Buffer.concat([digest(context, payload), payload]).toString('base64url');
}

/** The text of the parts, joined by NUL; undefined when it is damaged or of another context. */
export function decodeParts(context: string, encoded: string): string | undefined {
  const bytes = Buffer.from(encoded, 'base64url');
  if (bytes.toString('base64url') !== encoded || bytes.length < digestBytes) return undefined;
  const payload = bytes.subarray(digestBytes);
  return digest(context, payload).equals(bytes.subarray(0, digestBytes)) ? payload.toString('utf8') : undefined;
}

/**
 * The page end of a cursor; undefined when it is damaged or of another list. A moment in the future, forged or of a gateway
 * whose clock is ahead, counts as now.
 */
export function decodeCursor(context: string, cursor: string, order: readonly OrderColumn[]): PageEnd | undefined {
  const text = decodeParts(context, cursor);
  if (text === undefined) return undefined;
  const [moment = '', ...parts] = text.split('\0');
  if (!isMoment(moment)) return undefined;
  const asOfMs = moment === '' ? null : Math.min(Number(moment), Date.now());
  if (parts.length === 0) return { key: null, asOfMs };
  const fits =
    parts.length === order.length && order.every(({ type }, i) => fieldType(type).isPrinted?.(parts[i] as string));
  return fits ? { key: parts, asOfMs } : undefined;
}

/** The end of the year 9999, after which PostgreSQL does not read what Date prints, epoch milliseconds. */
const momentMax = 253_402_300_799_999;

/** Whether the text is a whole number from 0 to `max`. */
export function isWholeNumber(text: string, max: bigint | number): boolean {
  return /^\d{1,20}$/.test(text) && BigInt(text) <= max;
}

/** Whether the part of a cursor or token is a moment, epoch milliseconds, or empty for none. */
export function isMoment(text: string): boolean {
  return text === '' || isWholeNumber(text, momentMax);
}

/** Whether a key is certainly not behind another in the order of a list: the order of texts is known to the database alone. */
export function isCertainlyWithin(key: Key, end: Key, order: readonly OrderColumn[], direction: Direction): boolean {
  const at = key.findIndex((value, i) => value !== end[i]);
  if (at < 0) return true;
  const [lesser, greater] = direction === 'asc' ? [key, end] : [end, key];
  const { type } = order[at] as OrderColumn;
  return fieldType(type).isLess?.(lesser[at] as string, greater[at] as string) ?? false;
}

const digestBytes = 12;

function digest(context: string, payload: Buffer): Buffer {
  return hash('sha256', Buffer.concat([Buffer.from(`${context}\0`), payload]), 'buffer').subarray(0, digestBytes);
}
