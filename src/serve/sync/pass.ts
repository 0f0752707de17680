import type { Requirement } from '../../postgres/choice.js';
import { ServerFault } from '../../postgres/database-errors.js';
import type { TextRow } from '../../postgres/row.js';
import { type Lsn, parseMark, type WalHistory } from '../../postgres/wal-position.js';
import type { OrderColumn, OrderKey } from '../../resource/definition/resource.js';
import { isKeyOf, isMoment, isWholeNumber } from '../read/cursor.js';
import { makeExpired, type TokenSeal } from './token-seal.js';

/** Repeats the read on another replica. */
class NotCurrent extends ServerFault {
  readonly code = 'not_current';
}

export type LatestTimeline = (mark: WalHistory) => string;

/** Takes the timeline of any server: a replica whose receiver has ended shows the timeline of its control file again. */
export function watchTimeline(primary: () => WalHistory | undefined): LatestTimeline {
  let seen: WalHistory | undefined;
  return ({ systemIdentifier, timeline }) => {
    for (const known of [primary(), seen])
      if (known?.systemIdentifier === systemIdentifier && known.timeline > timeline) return known.timeline;
    seen = { systemIdentifier, timeline };
    return timeline;
  };
}

/** Loses no row: no snapshot is older than the one before, and all are of one history, as a failover uses ids again. */
export class Pass {
  /** `now` comes from a cursor, `since` from the pass before. */
  constructor(
    private now: SyncPosition | null,
    private readonly since: SyncPosition | null,
    private readonly latest: LatestTimeline,
  ) {}

  /** Must not be read before the first statement has ended. */
  get position(): SyncPosition {
    if (this.now === null) throw new Error('the pass has no position before its first statement');
    return this.now;
  }

  get requirement(): Requirement {
    return { replicasOnly: true, ...(this.before && { replayed: this.before.lsn }) };
  }

  /** Takes the marks before and after the rows of a statement that has ended: a failed attempt leaves the pass unchanged. */
  readonly accept = (marks: readonly TextRow[]): void => {
    this.now = marks.reduce<SyncPosition | null>((now, mark) => this.#advance(mark, now), this.now);
  };

  /** The next statement must not be behind this position; null at the beginning of a pass over everything. */
  get before(): SyncPosition | null {
    return this.now ?? this.since;
  }

  /** Throws sync_expired if the replica has another history than the pass. */
  readonly compare = (marks: readonly TextRow[]): void => {
    for (const mark of marks) this.#checkHistory(mark, this.before);
  };

  #checkHistory(row: TextRow, before: SyncPosition | null) {
    const mark = parseMark(row);
    if (mark === null) throw new NotCurrent('the server is no replica');
    const timeline = this.latest(mark);
    if (before !== null && (before.systemIdentifier !== mark.systemIdentifier || before.timeline !== timeline))
      throw makeExpired();
    // An older copy of the same server began here, and wrote as much since in fewer transactions.
    if (before !== null && mark.lsn >= before.lsn && mark.xmax < before.xmin) throw makeExpired();
    return { mark, timeline };
  }

  /** Throws sync_expired, or NotCurrent, which repeats the statement on another replica. */
  #advance(row: TextRow, now: SyncPosition | null): SyncPosition {
    const before = now ?? this.since;
    const { mark, timeline } = this.#checkHistory(row, before);
    if (mark.timeline !== timeline) throw new NotCurrent('the replica does not show that it follows the primary');
    if (before !== null && mark.lsn < before.lsn) throw new NotCurrent('the replica is behind the pass');
    if (now !== null && mark.xmin < now.xmin) throw new NotCurrent('the replica lacks transactions');
    const { xmin, replayedAtMs } = now ?? { ...mark, replayedAtMs: mark.replayedAtMs ?? before?.replayedAtMs ?? null };
    const { lsn, systemIdentifier } = mark;
    return { systemIdentifier, timeline, lsn, xmin, replayedAtMs };
  }
}

export interface SyncPosition extends WalHistory {
  /** A later pass must not read an older state. */
  readonly lsn: Lsn;
  /** The oldest transaction running in the first snapshot: changes of earlier ones are delivered. */
  readonly xmin: bigint;
  /** Commit time of the last transaction before the first snapshot, in epoch milliseconds. */
  readonly replayedAtMs: number | null;
}

/** The position of a cursor in its pass. */
export interface SyncPlace {
  readonly pass: SyncPosition;
  readonly asOfMs: number | null;
  /** End of the pass before; null in a pass over everything. */
  readonly since: Pick<SyncPosition, 'xmin' | 'replayedAtMs'> | null;
  readonly section: number;
  readonly after: OrderKey | null;
}

const formatNumberOrNone = (value: number | bigint | null | undefined): string => String(value ?? '');

/** `context` binds the token to its workspace and resource. */
export function encodeToken(seal: TokenSeal, context: string, position: SyncPosition): string {
  return seal.encode(context, listPositionTexts(position));
}

/** Returns undefined if the token is damaged or of another context. Throws sync_expired when its key was replaced. */
export function decodeToken(seal: TokenSeal, context: string, token: string): SyncPosition | undefined {
  return parseSyncPosition(seal.decode(context, token) ?? []);
}

export function encodePlace(seal: TokenSeal, context: string, place: SyncPlace): string {
  const { pass, asOfMs, since, section, after } = place;
  const before = [formatNumberOrNone(since?.xmin), formatNumberOrNone(since?.replayedAtMs)];
  const texts = [formatNumberOrNone(asOfMs), ...before, String(section), ...(after ?? [])];
  return seal.encode(context, [...listPositionTexts(pass), ...texts]);
}

/** Returns undefined if the cursor is damaged or of another list. `orders` has the order of each section. */
export function decodePlace(
  seal: TokenSeal,
  context: string,
  cursor: string,
  orders: (isChanges: boolean) => readonly (readonly OrderColumn[])[],
): SyncPlace | undefined {
  const texts = seal.decode(context, cursor) ?? [];
  const pass = parseSyncPosition(texts.slice(0, positionLength));
  const [asOf = '-', xmin = '-', replayed = '-', section = '-', ...key] = texts.slice(positionLength);
  if (pass === undefined) return undefined;
  if (!isMoment(asOf) || !isMoment(replayed) || (xmin !== '' && !isTransaction(xmin))) return undefined;
  const order = /^\d$/.test(section) ? orders(xmin !== '')[Number(section)] : undefined;
  if (order === undefined || (key.length > 0 && !isKeyOf(order, key))) return undefined;
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
/** Accepts ids that statements can read as a bigint. */
const isTransaction = (text: string): boolean => isWholeNumber(text, 2n ** 63n - 1n);
const forms = [isUnsigned, (text: string) => /^[0-9A-F]{8}$/.test(text), isUnsigned, isTransaction, isMoment];

function listPositionTexts({ systemIdentifier, timeline, lsn, xmin, replayedAtMs }: SyncPosition): string[] {
  return [systemIdentifier, timeline, String(lsn), String(xmin), formatNumberOrNone(replayedAtMs)];
}

function parseSyncPosition(texts: readonly string[]): SyncPosition | undefined {
  if (texts.length !== positionLength || !forms.every((hasForm, i) => hasForm(texts[i] as string))) return undefined;
  const [systemIdentifier, timeline, lsn, xmin, replayed] = texts as [string, string, string, string, string];
  const replayedAtMs = replayed === '' ? null : Number(replayed);
  return { systemIdentifier, timeline, lsn: BigInt(lsn), xmin: BigInt(xmin), replayedAtMs };
}
