import { hash } from 'node:crypto';
import { getType } from '../../resource/definition/field-types.js';
import type { ParameterText } from '../../resource/definition/filter-kinds.js';
import type { OrderColumn, OrderKey } from '../../resource/definition/resource.js';

/** The end of a page: the next one starts after its key, on a server at least as current. */
export interface PageEnd {
  readonly key: OrderKey | null;
  /** In epoch milliseconds by the gateway's clock; null when unknown. */
  readonly asOfMs: number | null;
}

/** Makes a context, whose digest a cursor carries. It needs no secret, because a forged cursor stays in the forger's workspace. */
export function makeCursorContext(
  workspace: string,
  resource: string,
  filters: Readonly<Record<string, ParameterText>>,
): string {
  return JSON.stringify([workspace, resource, Object.entries(filters).sort(([a], [b]) => (a < b ? -1 : 1))]);
}

/** Encodes a digest, the moment and the key as base64url. No text of PostgreSQL holds NUL. */
export function encodeCursor(context: string, { key, asOfMs }: PageEnd): string {
  return encodeBytes(context, Buffer.from([String(asOfMs ?? ''), ...(key ?? [])].join('\0')));
}

export function encodeBytes(context: string, payload: Buffer): string {
  return Buffer.concat([hashCursor(context, payload), payload]).toString('base64url');
}

/** Returns undefined if the text is damaged or of another context. */
export function decodeBytes(context: string, encoded: string): Buffer | undefined {
  const bytes = Buffer.from(encoded, 'base64url');
  if (bytes.toString('base64url') !== encoded || bytes.length < digestBytes) return undefined;
  const payload = bytes.subarray(digestBytes);
  return hashCursor(context, payload).equals(bytes.subarray(0, digestBytes)) ? payload : undefined;
}

/** Returns undefined if the cursor is damaged or of another list. */
export function decodeCursor(context: string, cursor: string, order: readonly OrderColumn[]): PageEnd | undefined {
  const text = decodeBytes(context, cursor)?.toString('utf8');
  if (text === undefined) return undefined;
  const [moment = '', ...texts] = text.split('\0');
  if (!isMoment(moment)) return undefined;
  const asOfMs = moment === '' ? null : Number(moment);
  if (texts.length === 0) return { key: null, asOfMs };
  return isKeyOf(order, texts) ? { key: texts, asOfMs } : undefined;
}

export function isKeyOf(order: readonly OrderColumn[], texts: readonly string[]): boolean {
  const isValue = ({ type }: OrderColumn, i: number): boolean => getType(type).isPrinted?.(texts[i] as string) === true;
  return texts.length === order.length && order.every(isValue);
}

/** The end of the year 9999: PostgreSQL does not read what Date prints after it. */
const momentMax = 253_402_300_799_999;

export function isWholeNumber(text: string, max: bigint | number): boolean {
  return /^\d{1,20}$/.test(text) && BigInt(text) <= max;
}

/** Accepts epoch milliseconds, or an empty text for none. */
export function isMoment(text: string): boolean {
  return text === '' || isWholeNumber(text, momentMax);
}

const digestBytes = 12;

function hashCursor(context: string, payload: Buffer): Buffer {
  return hash('sha256', Buffer.concat([Buffer.from(`${context}\0`), payload]), 'buffer').subarray(0, digestBytes);
}
