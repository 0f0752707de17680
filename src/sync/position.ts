import type { Lsn, WalHistory } from '../db/wal-position.js';
import { fieldType } from '../definition/field-types.js';
import type { OrderColumn } from '../definition/resource.js';
import type { Key } from '../definition/row-serializer.js';
import { decodeParts, encodeParts, isMoment, isWholeNumber } from '../read/page-ends.js';

/** The state of the data that a pass has delivered: the content of a sync token. */
export interface SyncPosition extends WalHistory {
  /** Position of the last statement of the pass: a later pass must not read an older state. */
  readonly lsn: Lsn;
  /** The oldest transaction that the first snapshot of the pass counted as running: changes of earlier ones are delivered. */
  readonly xmin: bigint;
  /** Commit time of the last transaction before the first snapshot, epoch milliseconds; null when it is not known. */
  readonly replayedAtMs: number | null;
}

/** The place inside a pass at which its next page begins: the content of a cursor. */
export interface SyncPlace {
  /** The pass so far. */
  readonly pass: SyncPosition;
  /** The moment of the first statement of the pass, epoch milliseconds; null when it is not known. */
  readonly asOfMs: number | null;
  /** The end of the pass before; null in a pass over everything. */
  readonly since: Pick<SyncPosition, 'xmin' | 'replayedAtMs'> | null;
  /** Number of the section; 0 in a pass over everything. */
  readonly section: number;
  /** The last key read in the section; null at its beginning. */
  readonly after: Key | null;
}

const version = '1';
const numberOrNone = (value: number | bigint | null | undefined): string => String(value ?? '');

/** A sync token. Like a cursor it carries a digest of its workspace and resource, see `cursorContext`. */
export function encodeToken(context: string, position: SyncPosition): string {
  return encodeParts(context, [version, ...positionParts(position)]);
}

/** The position of a token; undefined when it is damaged, or of another workspace or resource. */
export function decodeToken(context: string, token: string): SyncPosition | undefined {
  const [found, ...parts] = decodeParts(context, token)?.split('\0') ?? [];
  return found === version && parts.length === positionLength ? positionOf(parts) : undefined;
}

/** A cursor inside a pass. */
export function encodePlace(context: string, { pass, asOfMs, since, section, after }: SyncPlace): string {
  const before = [numberOrNone(since?.xmin), numberOrNone(since?.replayedAtMs)];
  const place = [numberOrNone(asOfMs), ...before, String(section), ...(after ?? [])];
  return encodeParts(context, [version, ...positionParts(pass), ...place]);
}

/** The place of a cursor; undefined when it is damaged or of another list. `orders` are those of the sections. */
export function decodePlace(
  context: string,
  cursor: string,
  orders: (isChanges: boolean) => readonly (readonly OrderColumn[])[],
): SyncPlace | undefined {
  const [found, ...parts] = decodeParts(context, cursor)?.split('\0') ?? [];
  const pass = positionOf(parts.slice(0, positionLength));
  const [asOf = '-', xmin = '-', replayed = '-', section = '-', ...key] = parts.slice(positionLength);
  if (found !== version || pass === undefined) return undefined;
  if (!isMoment(asOf) || !isMoment(replayed) || (xmin !== '' && !isTransaction(xmin))) return undefined;
  const order = /^\d$/.test(section) ? orders(xmin !== '')[Number(section)] : undefined;
  const isKey = (values: readonly string[]): boolean =>
    values.length === order?.length && order.every(({ type }, i) => fieldType(type).isPrinted?.(values[i] as string));
  if (order === undefined || (key.length > 0 && !isKey(key))) return undefined;
  return {
    pass,
    asOfMs: asOf === '' ? null : Math.min(Number(asOf), Date.now()),
    since: xmin === '' ? null : { xmin: BigInt(xmin), replayedAtMs: replayed === '' ? null : Number(replayed) },
    section: Number(section),
    after: key.length === 0 ? null : key,
  };
}

const positionLength = 5;
const isUnsigned = (text: string): boolean => isWholeNumber(text, 2n ** 64n - 1n);
/** The statements read it as a bigint. */
const isTransaction = (text: string): boolean => isWholeNumber(text, 2n ** 63n - 1n);
const forms = [isUnsigned, (text: string) => /^[0-9A-F]{8}$/.test(text), isUnsigned, isTransaction, isMoment];

function positionParts({ systemIdentifier, timeline, lsn, xmin, replayedAtMs }: SyncPosition): string[] {
  return [systemIdentifier, timeline, String(lsn), String(xmin), numberOrNone(replayedAtMs)];
}

function positionOf(parts: readonly string[]): SyncPosition | undefined {
  if (parts.length !== positionLength || !forms.every((hasForm, i) => hasForm(parts[i] as string))) return undefined;
  const [systemIdentifier, timeline, lsn, xmin, replayed] = parts as [string, string, string, string, string];
  const replayedAtMs = replayed === '' ? null : Number(replayed);
  return { systemIdentifier, timeline, lsn: BigInt(lsn), xmin: BigInt(xmin), replayedAtMs };
}
