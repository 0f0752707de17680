import { makeInvalid } from '../../base/errors.js';
import type { TextRow } from '../../postgres/row.js';
import type { Statement, Values } from '../../postgres/statement.js';
import { formatArray } from '../../resource/definition/filter-kinds.js';
import type { OrderKey } from '../../resource/definition/resource.js';
import type { Bounds } from '../../resource/statements/conditions.js';
import type { Section, SyncStatements } from '../../resource/statements/sync-statements.js';
import { composeUrl } from '../read/list.js';
import { chunkByIds, chunkByKeys, type PageEnding, type PageStart, type Plan } from '../read/page.js';
import { type ReadDeps, Reader } from '../read/routing.js';
import { makeDataAsOf, type Reply } from '../reply.js';
import { requireHistory } from './history.js';
import { encodePlace, encodeToken, type LatestTimeline, Pass, type SyncPlace, type SyncPosition } from './pass.js';
import { listRanges, type ReadInPass, type ScanResult, scan } from './scan.js';
import { type DigestRequest, type FeedRequest, type HashRequest, listPrefixes, listSections } from './sync-request.js';

export interface SyncDeps {
  readonly reads: ReadDeps;
  readonly latestTimeline: LatestTimeline;
}

/** Plans a page of a pass: finds its rows, and describes the page by its cursor, or by the token of the next pass. */
export async function planFeed(deps: SyncDeps, request: FeedRequest): Promise<Plan> {
  const { place: start, prefix, contexts, perPage, fields, serializer, seal } = request;
  const { pass, reader, read } = await openPass(deps, request, start?.pass ?? null);
  const since = start === null ? request.since : start.since;
  const isWhole = prefix === null && since === null;
  const foundIds = isWhole ? null : await findIds(read, request, since);
  const rows = isWhole
    ? { rowsMax: perPage, chunks: chunkByKeys(request, start?.after ?? null), list: request }
    : planPageOfIds(request, foundIds?.ids ?? []);
  const describe = ({ asOfMs: ofRows, until, hasMore }: PageStart): PageEnding => {
    const asOfMs = start === null ? (foundIds ?? { asOfMs: ofRows }).asOfMs : start.asOfMs;
    const pagination = async (count: number, last: OrderKey | null): Promise<object> => {
      const following = foundIds === null ? (hasMore ? { section: 0, after: until ?? last } : null) : foundIds.next;
      const cursor =
        following && encodePlace(seal, contexts.cursor, { pass: pass.position, asOfMs, since, ...following });
      const repeated = { ...(prefix !== null && { prefix }), ...(fields !== undefined && { fields }) };
      const path = `sync/${request.compiled.resource.name}`;
      return {
        perPage,
        count,
        hasMore: cursor !== null,
        nextCursor: cursor,
        next: cursor && composeUrl(request, path, { perPage: String(perPage), ...repeated, cursor }),
        since: cursor === null && prefix === null ? encodeToken(seal, contexts.token, pass.position) : null,
      };
    };
    return { asOfMs, pagination };
  };
  const copy = since === null ? 'pass' : 'changes';
  return { reader, serializer, perPage, requirement: pass.requirement, copy, describe, ...rows };
}

function planPageOfIds({ compiled, selection }: FeedRequest, ids: readonly string[]) {
  const { rows } = compiled.statements.list(['ids'], 'asc', selection);
  return { rowsMax: Math.max(1, ids.length), chunks: chunkByIds(rows.all, ids), list: null };
}

/** Begins or continues a pass. Each statement is checked by the marks of its replica, which must be as current as the pass. */
async function openPass(deps: SyncDeps, request: FeedRequest | HashRequest, soFar: SyncPosition | null) {
  const { reads, latestTimeline } = deps;
  const pass = new Pass(soFar, request.since, latestTimeline);
  const reader = new Reader(reads, request, pass.accept);
  await requireHistory(reads, request, pass);
  const read: ReadInPass = (statement, values) =>
    reader.readRows(statement, { ...request.values, ...values }, pass.requirement);
  return { pass, reader, read };
}

/** Finds ids, whose rows are read in the order found, which is the order of the list, changed parts excepted. */
function findIds(read: ReadInPass, request: FeedRequest, since: SyncPlace['since']): Promise<ScanResult> {
  const { perPage, prefix } = request;
  const values = {
    since: String(since?.xmin ?? 0),
    horizon: getHorizon(request, since),
    prefixes: formatArray(listPrefixes(prefix)),
  };
  return scan(read, listSections(request, prefix), request.place ?? { section: 0, after: null }, values, perPage);
}

/** Finds the oldest records that the pass before can have missed, as a timestamptz. */
function getHorizon({ compiled }: FeedRequest, since: SyncPlace['since']): string {
  const { horizonHours } = compiled.resource.sync?.appendOnly ?? {};
  if (horizonHours === undefined || since?.replayedAtMs == null) return '-infinity';
  return new Date(since.replayedAtMs - horizonHours * 3_600_000).toISOString();
}

const idsMax = 100_000;
/** Rows of a range: hashing is most of the work. */
const hashedRows = 50_000;
/** Rows can be added to a range after its end was found. */
const allRows = 2 ** 31;

/** Counts by the first digits of SHA-256(id), or by period, with the XOR of the first 8 bytes of SHA-256(id, newline, version). */
export async function readDigest(deps: SyncDeps, request: DigestRequest): Promise<Reply> {
  const { sync, depth, periods } = request;
  const { digest, hashed } = sync;
  if (periods === null) {
    const reply = await answerByRanges(deps, request, async (read) => {
      const groups = new Map<string, Digest>();
      for await (const [prefix, ...row] of read(hashed, digest, { depth }))
        groups.set(prefix as string, addRow(groups.get(prefix as string), row));
      const sorted = [...groups].sort(([a], [b]) => (a < b ? -1 : 1));
      return sorted.map(([prefix, group]) => ({ prefix, ...formatDigest(group) }));
    });
    const { name } = request.compiled.resource;
    return { ...reply, content: { resource: name, personal: '', records: 0, copy: 'digest' } };
  }
  const period = sync.period as NonNullable<SyncStatements['period']>;
  return answerByRanges(deps, request, async (read) => {
    const data: object[] = [];
    for (const { from, to, isMonth } of periods) {
      const values = { [period.first]: from, [period.last]: to, limit: allRows };
      let group: Digest | undefined;
      for await (const [, ...row] of read(period, period.digest, values)) group = addRow(group, row);
      data.push({ ...(isMonth ? { from, to } : { prefix: '' }), ...formatDigest(group ?? emptyDigest) });
    }
    return data;
  });
}

interface Digest {
  readonly count: number;
  readonly hash: bigint;
}

const emptyDigest: Digest = { count: 0, hash: 0n };

/** Adds counts and hashes; PostgreSQL's XOR of no row is NULL. */
function addRow(group: Digest = emptyDigest, [count, bits]: TextRow): Digest {
  return { count: group.count + Number(count), hash: group.hash ^ BigInt(`0b${bits ?? 0}`) };
}

const formatDigest = ({ count, hash }: Digest) => ({ count, hash: hash.toString(16).padStart(16, '0') });

/** Reads records whose SHA-256(id) begins with one of the prefixes. Throws invalid_request when there are too many. */
export function readIds(deps: SyncDeps, request: HashRequest): Promise<Reply> {
  const { hashed, versions } = request.sync;
  const values = { prefixes: formatArray(request.prefixes), limit: idsMax + 1 };
  return answerByRanges(deps, request, async (read) => {
    const data: object[] = [];
    for await (const [id, syncVersion] of read(hashed, versions, values)) {
      data.push({ id, syncVersion });
      const detail = `More than ${idsMax} ids have these prefixes: use longer ones.`;
      if (data.length > idsMax) throw makeInvalid([{ parameter: 'prefix', code: 'out_of_range', detail }]);
    }
    return data;
  });
}

/** Reads the rows of a statement, range by range. */
type ReadRanges = (
  section: Pick<Section, 'ahead'>,
  statements: Readonly<Record<Bounds, Statement>>,
  values: Values,
) => AsyncIterable<TextRow>;

async function answerByRanges(
  deps: SyncDeps,
  request: HashRequest,
  collect: (read: ReadRanges) => Promise<readonly object[]>,
): Promise<Reply> {
  const { read, reader } = await openPass(deps, request, null);
  let asOfMs: number | null | undefined;
  const readRanges: ReadRanges = async function* (section, statements, values) {
    for await (const range of listRanges(read, section, null, values, hashedRows, hashedRows)) {
      const found = await read(statements[range.bounds], range.values);
      asOfMs ??= found.asOfMs;
      yield* found.rows;
    }
  };
  const data = await collect(readRanges);
  const body = JSON.stringify({ data, pagination: { count: data.length, complete: true } });
  return { status: 200, headers: makeDataAsOf(asOfMs ?? null), body, databaseMs: performance.now() - reader.startedMs };
}
