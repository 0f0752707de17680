import { Client, paginationOf } from '../client.js';
import type { Options } from '../options.js';
import { type CaseResult, figure, type Table, type Verdict } from '../result.js';
import { alternate, median, pairedRatio } from '../rounds.js';
import { rowsOf, type Stage } from '../stage.js';

const lastPage = 2000;
const goal = 1.2;
const turnsPerRound = 20;
const jumps = 15;
/** Pages averaged at either end of the walk. */
const windowPages = 50;

/** Whether a page far back costs what the first one does: by page number, by cursor, by a jump; on the log as well. */
export async function deepCase(stage: Stage, options: Options): Promise<CaseResult> {
  const client = new Client(stage);
  try {
    const walk = await walkWorkOrders(client, options);
    const log = await deepLog(client, stage, options);
    return { verdicts: [...walk.verdicts, ...log.verdicts], tables: [walk.table, log.table], skipped: [] };
  } finally {
    client.close();
  }
}

async function walkWorkOrders(client: Client, { rounds }: Options): Promise<{ verdicts: Verdict[]; table: Table }> {
  const first = '/werkbonnen?perPage=100&page=1';
  const last = `/werkbonnen?perPage=100&page=${lastPage}`;
  for (let i = 0; i < windowPages; i++) await client.get(first);
  const walkedMs: number[] = [];
  let deepCursor = '';
  for (let page = 1; page <= lastPage; page++) {
    const answer = await client.get(`/werkbonnen?perPage=100&page=${page}`);
    walkedMs.push(answer.ms);
    if (page === lastPage - 1) deepCursor = paginationOf(answer).endCursor;
  }
  const turns = rounds * turnsPerRound;
  const [firstMs = [], lastMs = []] = await alternate(
    [first, last],
    turns,
    async (path) => (await client.get(path)).ms,
  );
  const nearCursor = paginationOf(await client.get(first)).endCursor;
  const cursors = [nearCursor, deepCursor].map((cursor) => `/werkbonnen?perPage=100&cursor=${cursor}`);
  const [nearMs = [], deepMs = []] = await alternate(cursors, turns, async (path) => (await client.get(path)).ms);
  const [jumpsMs, nearJumpsMs]: [number[], number[]] = [[], []];
  for (let i = 0; i < jumps; i++) {
    // Another page size each time, so that no end of a page is remembered before the first jump.
    const path = (page: number): string => `/werkbonnen?perPage=${101 + i}&page=${page}`;
    jumpsMs.push((await client.get(path(1000 + i * 60))).ms);
    nearJumpsMs.push((await client.get(path(1030 + i * 60))).ms);
  }
  const walkRatio = pairedRatio(lastMs, firstMs);
  const cursorRatio = pairedRatio(deepMs, nearMs);
  const rows = [
    ['walk, first 50 pages', figure(median(walkedMs.slice(0, windowPages))), ''],
    ['walk, last 50 pages', figure(median(walkedMs.slice(-windowPages))), ''],
    ['page 1', figure(median(firstMs)), ''],
    [`page ${lastPage} after page ${lastPage - 1}`, figure(median(lastMs)), figure(walkRatio)],
    ['cursor of page 1', figure(median(nearMs)), ''],
    [`cursor of page ${lastPage - 1}`, figure(median(deepMs)), figure(cursorRatio)],
    ['jump to a page between 1,000 and 1,900', figure(median(jumpsMs)), figure(median(jumpsMs) / median(firstMs))],
    ['jump of 30 pages from there', figure(median(nearJumpsMs)), figure(median(nearJumpsMs) / median(firstMs))],
  ];
  const verdicts: Verdict[] = [
    {
      what: `Page ${lastPage} of 100 against page 1, walking: time`,
      value: walkRatio,
      goal,
      bound: 'at most',
      unit: '×',
    },
    { what: 'Cursor far back against the first cursor: time', value: cursorRatio, goal, bound: 'at most', unit: '×' },
  ];
  const note = `One client, one request at a time, pages of 100; medians of ${turns} turns, for jumps of ${jumps} different ones.`;
  return { verdicts, table: { title: 'Deep pages of work orders', note, head: ['', 'ms', '×'], rows } };
}

/** The log with each kind of filter: its first page, a jump near its end, and the page after that. */
async function deepLog(
  client: Client,
  stage: Stage,
  { rounds }: Options,
): Promise<{ verdicts: Verdict[]; table: Table }> {
  const busiest = `select entiteit_id from app.logboeken where workspace_id = $1 group by 1 order by count(*) desc, 1 limit 1`;
  const [[entityId = ''] = []] = await rowsOf(stage.replicaUrl, busiest, [stage.workspace]);
  const year = new Date().getUTCFullYear() - 4;
  const filters = {
    none: '',
    entity: '&entity=installatie',
    'from, to': `&from=${year}-01-01&to=${year + 1}-12-31`,
    'entity, from, to': `&entity=klant&from=${year}-01-01&to=${year + 1}-12-31`,
    entityId: `&entityId=${entityId}`,
  };
  const rows: string[][] = [];
  const verdicts: Verdict[] = [];
  for (const [name, filter] of Object.entries(filters)) {
    const path = (page: number, perPage = 100): string => `/logboeken?perPage=${perPage}&page=${page}${filter}`;
    const { total = 0 } = paginationOf(await client.get(`${path(1)}&total=true`));
    const deep = Math.max(1, Math.floor(total / 100) - 1);
    const jumpsMs: number[] = [];
    for (let i = 0; i < 5; i++) jumpsMs.push((await client.get(path(deep, 95 + i))).ms);
    await client.get(path(deep));
    const turns = rounds * turnsPerRound;
    const [firstMs = [], deepMs = []] = await alternate(
      [1, deep + 1],
      turns,
      async (page) => (await client.get(path(page))).ms,
    );
    const ratio = pairedRatio(deepMs, firstMs);
    const isDeep = deep > 10;
    rows.push([
      name,
      total.toLocaleString('en'),
      figure(median(firstMs)),
      isDeep ? figure(median(deepMs)) : '',
      isDeep ? figure(ratio) : '',
      isDeep ? figure(median(jumpsMs)) : '',
    ]);
    if (isDeep)
      verdicts.push({
        what: `Log, filter ${name}, last pages against page 1: time`,
        value: ratio,
        goal,
        bound: 'at most',
        unit: '×',
      });
  }
  const note =
    'The audit log of eight years. "Deep" is the page after the one jumped to, near the end of what the filter leaves.';
  return {
    verdicts,
    table: {
      title: 'Deep pages of the log',
      note,
      head: ['filter', 'rows', 'page 1, ms', 'deep, ms', '×', 'jump, ms'],
      rows,
    },
  };
}
