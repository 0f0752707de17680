import type { TextRow } from '../db/row.js';
import type { Statement, Values } from '../db/statement.js';
import { arrayText } from '../definition/filter-kinds.js';
import type { Bounds } from '../definition/statements.js';
import { invalid } from '../errors.js';
import { dataAsOf, type Reply } from '../read/reply.js';
import { listOf, type SyncDeps } from './feed.js';
import { Pass } from './pass.js';
import type { HashRequest } from './request.js';
import { type RangeSizes, rangesOf, readInPass, type ScanDeps } from './scan.js';

/** Ids in an answer at most. */
const idsMax = 100_000;
/** Hashing is most of the work of these statements. */
const sizes: RangeSizes = { first: 100_000, growth: 1, max: 100_000 };

/** Rows grouped by the first hexadecimal digits of the SHA-256 of their ids: number, and XOR of the first 8 bytes of SHA-256(id, newline, version). */
export async function readDigest(deps: SyncDeps, request: HashRequest): Promise<Reply> {
  const groups = new Map<string, { count: number; hash: bigint }>();
  const { digest } = request.sync;
  const values = { depth: request.depth };
  return reply(
    deps,
    request,
    digest,
    values,
    ([prefix, count, bits]) => {
      const group = groups.get(prefix as string) ?? { count: 0, hash: 0n };
      groups.set(prefix as string, { count: group.count + Number(count), hash: group.hash ^ BigInt(`0b${bits}`) });
    },
    () =>
      [...groups]
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([prefix, { count, hash }]) => ({
          prefix,
          count,
          hash: hash.toString(16).padStart(16, '0'),
        })),
  );
}

/** Ids and versions of the records whose ids' SHA-256 begins with one of the prefixes. Throws invalid() when there are too many for an answer. */
export async function readIds(deps: SyncDeps, request: HashRequest): Promise<Reply> {
  const found: { id: string; syncVersion: string }[] = [];
  const values = { prefixes: arrayText(request.prefixes), limit: idsMax + 1 };
  return reply(
    deps,
    request,
    request.sync.versions,
    values,
    ([id, syncVersion]) => {
      found.push({ id: id as string, syncVersion: syncVersion as string });
      if (found.length > idsMax) throw tooMany();
    },
    () => found,
  );
}

/** Runs a statement over every range, and replies with the data that they make together. */
async function reply(
  { reads, latestTimeline }: SyncDeps,
  request: HashRequest,
  statements: Readonly<Record<Bounds, Statement>>,
  values: Values,
  add: (row: TextRow) => void,
  data: () => readonly unknown[],
): Promise<Reply> {
  const startedMs = performance.now();
  const pass = new Pass({ pass: null, since: request.since }, latestTimeline);
  const deps: ScanDeps = { reads, list: listOf(request, pass), requirement: () => pass.requirement };
  let asOfMs: number | null | undefined;
  for await (const range of rangesOf(deps, request.sync.hashed, null, values, sizes)) {
    const read = await readInPass(deps, statements[range.bounds], range.values);
    asOfMs ??= read.asOfMs;
    for (const row of read.rows) add(row);
  }
  const rows = data();
  const body = JSON.stringify({ data: rows, pagination: { count: rows.length, complete: true } });
  return { status: 200, headers: dataAsOf(asOfMs ?? null), body, databaseMs: performance.now() - startedMs };
}

function tooMany(): Error {
  const detail = `More than ${idsMax} ids have these prefixes: use longer ones.`;
  return invalid([{ parameter: 'prefix', code: 'out_of_range', detail }]);
}
