import type { OrderKey } from '../../src/resource/definition/resource.js';
import { compileStatements } from '../../src/resource/statements/statements.js';
import { decodeCursor, makeCursorContext } from '../../src/serve/read/cursor.js';
import { psqlMs } from '../cases/pages.js';
import { Client } from '../client.js';
import { cpuMsOf, peakMbOf, resetPeak, treeCpuMsOf } from '../processes.js';
import { type Figure, figure, type Measured } from '../report.js';
import { median, pairedRatios } from '../rounds.js';
import { makeMac, workspaceOf } from './data.js';
import { resourceOf, type Subject } from './subject.js';

const perPage = 10_000;
const slices = 10;
/** Pages averaged at either end of a walk. */
const windowPages = 10;

/** One side of a slice of the list. */
interface Cost {
  readonly wallMs: number;
  readonly gatewayMs: number;
  readonly replicaMs: number;
}

/** Reads a list page by page to its end, as docs/reference/lists.md advises, in slices that take turns with COPY of the same rows. */
export async function walksOf(subject: Subject, rows: Readonly<Record<string, number>>): Promise<Measured> {
  const figures: Record<string, Figure> = {};
  const table: string[][] = [];
  for (const [resource, count] of Object.entries(rows)) {
    const kind = resource === 'werkbonnen' ? 'work orders' : 'log entries';
    const what = `Walk over all ${kind}`;
    resetPeak(subject.gatewayPid);
    const { ours, theirs, pagesMs } = await walk(subject, resource, count);
    const peakMb = peakMbOf(subject.gatewayPid);
    const ends = [pagesMs.slice(0, windowPages), pagesMs.slice(-windowPages - 1, -1)].map(median) as [number, number];
    figures[`${what} against COPY: time`] = pairedRatios(ours, theirs, ({ wallMs }) => wallMs);
    figures[`${what}: last pages against the first: time`] = ends[1] / ends[0];
    figures[`${what}: gateway memory`] = peakMb;
    const sums = (side: readonly Cost[]): string[] =>
      (['wallMs', 'replicaMs', 'gatewayMs'] as const).map((of) =>
        figure(side.reduce((sum, cost) => sum + cost[of], 0) / 1000),
      );
    table.push(
      [`${count.toLocaleString('en')} ${kind}`, ...sums(ours), figure(ends[0]), figure(ends[1]), figure(peakMb)],
      ['COPY by psql', ...sums(theirs).slice(0, 2), '', '', '', ''],
    );
  }
  const note = `Pages of 10,000 by \`next\`, one after the other, and COPY of the same rows, in ${slices} slices that take turns. The ratio against COPY is the median of the slices; the times here are sums. First and last pages: medians of ${windowPages} pages.`;
  const head = [
    '',
    'wall, s',
    'replica CPU, s',
    'gateway CPU, s',
    'first pages, ms',
    'last pages, ms',
    'peak memory, MB',
  ];
  return { figures, tables: [{ title: 'A walk over everything', note, head, rows: table }] };
}

async function walk(
  subject: Subject,
  resource: string,
  count: number,
): Promise<{ ours: Cost[]; theirs: Cost[]; pagesMs: number[] }> {
  const client = await Client.connect(subject);
  const pagesPerSlice = Math.ceil(count / perPage / slices);
  const pagesMs: number[] = [];
  const [ours, theirs]: [Cost[], Cost[]] = [[], []];
  let [read, cursor]: [number, string | null] = [0, ''];
  const readSlice = async (): Promise<void> => {
    for (let page = 0; page < pagesPerSlice && cursor !== null; page++) {
      const from = cursor === '' ? '' : `&cursor=${cursor}`;
      const { ms, pagination } = await client.page(`/api/v1/${resource}?perPage=${perPage}${from}`);
      pagesMs.push(ms);
      read += pagination.count;
      cursor = pagination.nextCursor;
    }
  };
  try {
    for (let slice = 0; cursor !== null; slice++) {
      const after = cursor === '' ? null : keyOf(resource, cursor);
      const copy = async (): Promise<void> =>
        void (await psqlMs(
          { ...subject, mac: makeMac(workspaceOf(0)) },
          copyText(resource, after, pagesPerSlice * perPage),
        ));
      const sides: [Cost[], () => Promise<void>][] = [
        [ours, readSlice],
        [theirs, copy],
      ];
      if (slice % 2 === 1) sides.reverse(); // so that neither side always finds the rows in memory
      for (const [costs, side] of sides) costs.push(await costOf(subject, side));
    }
    if (read !== count) throw new Error(`the walk has ${read} of ${count} rows`);
    return { ours, theirs, pagesMs };
  } finally {
    client.close();
  }
}

async function costOf({ gatewayPid, replicaPid }: Subject, work: () => Promise<void>): Promise<Cost> {
  const [gatewayMs, replicaMs, startedMs] = [cpuMsOf(gatewayPid), treeCpuMsOf(replicaPid), performance.now()];
  await work();
  return {
    wallMs: performance.now() - startedMs,
    gatewayMs: cpuMsOf(gatewayPid) - gatewayMs,
    replicaMs: treeCpuMsOf(replicaPid) - replicaMs,
  };
}

function keyOf(resource: string, cursor: string): OrderKey {
  const { name, order } = resourceOf(resource);
  const end = decodeCursor(makeCursorContext(workspaceOf(0), name, {}), cursor, order);
  if (end?.key == null) throw new Error(`the cursor ${cursor} cannot be read`);
  return end.key;
}

/** Copies by the gateway's own statement: the same columns, rows and order. */
function copyText(resource: string, after: OrderKey | null, limit: number): string {
  const { rows } = compileStatements(resourceOf(resource)).list([]);
  const { text, parameters } = rows[after === null ? 'all' : 'after'];
  const values: Readonly<Record<string, string>> = {
    workspace: workspaceOf(0),
    limit: String(limit),
    ...(after && { after0: after[0] as string, after1: after[1] as string }),
  };
  const select = text.replace(/\$(\d+)/g, (_, number) => `'${values[parameters[Number(number) - 1] as string]}'`);
  return `copy (${select}) to stdout`;
}
