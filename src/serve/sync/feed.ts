import { invalid } from '../../base/errors.js';
import type { TextRow } from '../../postgres/row.js';
import type { Statement, Values } from '../../postgres/statement.js';
import { arrayText } from '../../resource/definition/filter-kinds.js';
import type { Key } from '../../resource/definition/row-serializer.js';
import type { Bounds } from '../../resource/statements/statements.js';
import type { Section, SyncStatements } from '../../resource/statements/sync-statements.js';
import { urlOf } from '../read/list.js';
import { type Page, pageReply, readFirstChunk, readPage } from '../read/page.js';
import type { Reading } from '../read/parse.js';
import { dataAsOf, type Reply } from '../read/reply.js';
import { type ReadDeps, readRows } from '../read/routing.js';
import { requireHistory } from './history.js';
import { encodePlace, encodeToken, type LatestTimeline, Pass, type SyncPlace, type SyncPosition } from './pass.js';
import { type DigestRequest, type FeedRequest, type HashRequest, prefixesOf, sectionsOf } from './request.js';
import { type ReadInPass, rangesOf, type ScanPlace, scan } from './scan.js';

export interface SyncDeps {
  readonly reads: ReadDeps;
  readonly latestTimeline: LatestTimeline;
}

/** `next` gives the place behind its last row; null at the end of the pass. */
interface FeedPage extends Page {
  readonly list: Reading;
  readonly asOfMs: number | null;
  readonly next: (last: Key | null) => ScanPlace | null;
}

/** Find the rows → read them → name the next page, or the token of the next pass. */
export async function readFeed(deps: SyncDeps, request: FeedRequest): Promise<Reply> {
  const startedMs = performance.now();
  const { place, prefix, contexts, perPage, fields } = request;
  const passing = await passingOf(deps, request, place?.pass ?? null);
  const since = place === null ? request.since : place.since;
  const page = await (prefix === null && since === null
    ? pageOfAll(passing, place)
    : pageOfFound(passing, request, since));
  const asOfMs = place === null ? page.asOfMs : place.asOfMs;
  const rest = { headers: dataAsOf(asOfMs), databaseMs: performance.now() - startedMs };
  return pageReply(deps.reads, page.list, page, rest, async (count, last) => {
    const following = page.next(last);
    const { position } = passing.pass;
    const cursor =
      following && encodePlace(request.seal, contexts.cursor, { pass: position, asOfMs, since, ...following });
    const kept = { ...(prefix !== null && { prefix }), ...(fields !== undefined && { fields }) };
    const path = `sync/${request.compiled.resource.name}`;
    return {
      perPage,
      count,
      hasMore: cursor !== null,
      nextCursor: cursor,
      next: cursor && urlOf(request, path, { perPage: String(perPage), ...kept, cursor }),
      since: cursor === null && prefix === null ? encodeToken(request.seal, contexts.token, position) : null,
    };
  });
}

/** Each statement is judged by the marks of its replica, and runs on one as current as the pass. */
async function passingOf(
  { reads, latestTimeline }: SyncDeps,
  request: FeedRequest | HashRequest,
  soFar: SyncPosition | null,
) {
  const pass = new Pass(soFar, request.since, latestTimeline);
  const list = { ...request, attempt: pass.attempt };
  await requireHistory(reads, request, pass);
  const read: ReadInPass = (statement, values) => readRows(reads, list, statement, values, pass.requirement);
  return { reads, pass, list, read };
}

type Passing = Awaited<ReturnType<typeof passingOf>>;

/** In the order of the list. */
async function pageOfAll({ reads, list, pass }: Passing, place: ScanPlace | null): Promise<FeedPage> {
  const page = await readPage(reads, list, place?.after ?? null, pass.requirement);
  const { first, hasMore, until } = page;
  const next = (last: Key | null): ScanPlace | null => (hasMore ? { section: 0, after: until ?? last } : null);
  return { ...page, list, asOfMs: first.asOfMs, next };
}

/** Their ids first, then the rows in the order of the list. */
async function pageOfFound(
  { reads, list, pass, read }: Passing,
  request: FeedRequest,
  since: SyncPlace['since'],
): Promise<FeedPage> {
  const { compiled, perPage, prefix, selection } = request;
  const values = {
    since: String(since?.xmin ?? 0),
    horizon: horizonOf(request, since),
    prefixes: arrayText(prefixesOf(prefix)),
  };
  const place: ScanPlace = request.place ?? { section: 0, after: null };
  const { ids, asOfMs, next } = await scan(read, sectionsOf(request, prefix), place, values, perPage);
  const found = {
    ...list,
    statements: compiled.statements.list(['ids'], 'asc', selection),
    values: { ids: arrayText(ids) },
  };
  const first = await readFirstChunk(reads, found, null, Math.max(1, ids.length), pass.requirement);
  return { first, until: null, foundMs: 0, list: found, asOfMs, next: () => next };
}

/** Of the oldest records that the pass before can have missed, as a timestamptz. */
function horizonOf({ compiled }: Reading, since: SyncPlace['since']): string {
  const { horizonHours } = compiled.resource.sync?.appendOnly ?? {};
  if (horizonHours === undefined || since?.replayedAtMs == null) return '-infinity';
  return new Date(since.replayedAtMs - horizonHours * 3_600_000).toISOString();
}

const idsMax = 100_000;
/** Per range: hashing is most of the work. */
const hashedRows = 50_000;
/** Of a range, to which rows can be added after its end was found. */
const allRows = 2 ** 31;

/** By the first digits of SHA-256(id), or by period: count, and XOR of the first 8 bytes of SHA-256(id, newline, version). */
export async function readDigest(deps: SyncDeps, request: DigestRequest): Promise<Reply> {
  const { sync, depth, periods } = request;
  const { digest, hashed } = sync;
  if (periods === null)
    return hashReply(deps, request, async (read) => {
      const groups = new Map<string, Digest>();
      for await (const [prefix, ...row] of read(hashed, digest, { depth }))
        groups.set(prefix as string, withRow(groups.get(prefix as string), row));
      const sorted = [...groups].sort(([a], [b]) => (a < b ? -1 : 1));
      return sorted.map(([prefix, group]) => ({ prefix, ...shown(group) }));
    });
  const period = sync.period as NonNullable<SyncStatements['period']>;
  return hashReply(deps, request, async (read) => {
    const data: object[] = [];
    for (const { from, to, isMonth } of periods) {
      const values = { [period.first]: from, [period.last]: to, limit: allRows };
      let group: Digest | undefined;
      for await (const [, ...row] of read(period, period.digest, values)) group = withRow(group, row);
      data.push({ ...(isMonth ? { from, to } : { prefix: '' }), ...shown(group ?? none) });
    }
    return data;
  });
}

interface Digest {
  readonly count: number;
  readonly hash: bigint;
}

const none: Digest = { count: 0, hash: 0n };

/** Of no row, PostgreSQL's XOR is NULL. */
function withRow(group: Digest = none, [count, bits]: TextRow): Digest {
  return { count: group.count + Number(count), hash: group.hash ^ BigInt(`0b${bits ?? 0}`) };
}

const shown = ({ count, hash }: Digest) => ({ count, hash: hash.toString(16).padStart(16, '0') });

/** Records whose SHA-256(id) begins with one of the prefixes. Throws invalid() when there are too many. */
export function readIds(deps: SyncDeps, request: HashRequest): Promise<Reply> {
  const { hashed, versions } = request.sync;
  const values = { prefixes: arrayText(request.prefixes), limit: idsMax + 1 };
  return hashReply(deps, request, async (read) => {
    const data: object[] = [];
    for await (const [id, syncVersion] of read(hashed, versions, values)) {
      data.push({ id, syncVersion });
      const detail = `More than ${idsMax} ids have these prefixes: use longer ones.`;
      if (data.length > idsMax) throw invalid([{ parameter: 'prefix', code: 'out_of_range', detail }]);
    }
    return data;
  });
}

/** The rows of a statement, range by range. */
type ReadRanges = (
  section: Pick<Section, 'ahead'>,
  statements: Readonly<Record<Bounds, Statement>>,
  values: Values,
) => AsyncIterable<TextRow>;

async function hashReply(
  deps: SyncDeps,
  request: HashRequest,
  dataOf: (read: ReadRanges) => Promise<readonly object[]>,
): Promise<Reply> {
  const startedMs = performance.now();
  const { read } = await passingOf(deps, request, null);
  let asOfMs: number | null | undefined;
  const readRanges: ReadRanges = async function* (section, statements, values) {
    for await (const range of rangesOf(read, section, null, values, hashedRows, hashedRows)) {
      const found = await read(statements[range.bounds], range.values);
      asOfMs ??= found.asOfMs;
      yield* found.rows;
    }
  };
  const data = await dataOf(readRanges);
  const body = JSON.stringify({ data, pagination: { count: data.length, complete: true } });
  return { status: 200, headers: dataAsOf(asOfMs ?? null), body, databaseMs: performance.now() - startedMs };
}
