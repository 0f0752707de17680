import pg from 'pg';
import { guardOf } from '../../src/db/wire/send-statement.js';
import { loadResources } from '../../src/definition/load.js';
import type { Resource } from '../../src/definition/resource.js';
import { compileSyncStatements, type SyncStatements } from '../../src/definition/sync-statements.js';
import { Client } from '../client.js';
import type { Options } from '../options.js';
import { treeCpuMsOf } from '../process-cost.js';
import { pullTable } from '../pull.js';
import { type CaseResult, figure } from '../result.js';
import { median } from '../rounds.js';
import { rowsOf, type Stage } from '../stage.js';
import { largeWorkspace } from '../sync-workspace.js';

const goalMs = 500;
const changed = 10;
/** Work orders of the large workspace: 5 million rows with their parts. */
const largeWorkOrders = 1_220_000;
const passesMax = 15;
const passesOfLarge = 3;

/** The workspace that a pass reads. */
interface Subject {
  readonly workspace: string;
  readonly token: string;
}

/** A pass over work orders since the pass before, ten of which changed, six themselves and four by a part. */
export async function syncCase(stage: Stage, options: Options): Promise<CaseResult> {
  const passes = Math.min(passesMax, options.rounds * 2);
  const first = await measure(stage, stage, passes);
  const pulls = await pullTable(stage, () => changeSome(stage.primaryUrl, stage.workspace), changed);
  const large = await largeWorkspace(stage, largeWorkOrders);
  const rows = [first.row, (await measure(stage, large, Math.min(passes, passesOfLarge))).row];
  const note = `All work orders of a workspace with their actions and hours, of which ${changed} changed since the pass before: time of the whole pass, time of the processor that the replica spent on it, and buffers of 8 KB that its statements read there. Medians of ${passes} passes, of ${passesOfLarge} over the larger workspace.`;
  const head = ['work orders', 'parts', 'pass, ms', 'replica CPU, ms', 'buffers', 'digest, ms', 'everything, s'];
  return {
    verdicts: [
      {
        what: 'Sync pass over 200,000 work orders, ten changed: time',
        value: first.passMs,
        goal: goalMs,
        bound: 'at most',
        unit: 'ms',
      },
    ],
    tables: [{ title: 'Sync', note, head, rows }, pulls],
    skipped: [],
  };
}

async function measure(
  stage: Stage,
  { workspace, token }: Subject,
  passes: number,
): Promise<{ passMs: number; row: string[] }> {
  const client = new Client({ origin: stage.origin, token });
  try {
    const everything = await pass(client, 'perPage=100000');
    await changeSome(stage.primaryUrl, workspace);
    const since = `since=${everything.since}`;
    // The replica replays the changes meanwhile.
    for (let i = 0; (await pass(client, since)).rows < changed; i++) if (i > 100) throw new Error('no pass finds them');
    const [passesMs, cpusMs]: [number[], number[]] = [[], []];
    for (let i = 0; i < passes; i++) {
      const beforeMs = treeCpuMsOf(stage.replicaPid);
      const { ms, rows } = await pass(client, since);
      cpusMs.push(treeCpuMsOf(stage.replicaPid) - beforeMs);
      if (rows !== changed) throw new Error(`the pass has ${rows} records, not ${changed}`);
      passesMs.push(ms);
    }
    const digest = await client.get('/sync/werkbonnen/digest?depth=2');
    const { workOrders, parts, buffers } = await cost(stage, workspace);
    const counts = [workOrders, parts].map((count) => count.toLocaleString('en'));
    const times = [figure(digest.ms), figure(everything.ms / 1000)];
    const passMs = median(passesMs);
    return { passMs, row: [...counts, figure(passMs), figure(median(cpusMs)), buffers.toLocaleString('en'), ...times] };
  } finally {
    client.close();
  }
}

/** Reads a pass to its end. */
async function pass(client: Client, query: string): Promise<{ ms: number; rows: number; since: string }> {
  let [ms, rows, path] = [0, 0, `/sync/werkbonnen?${query}`];
  for (;;) {
    const answer = await client.get(path);
    const at = answer.body.lastIndexOf(',"pagination":');
    const { pagination } = JSON.parse(`{${answer.body.slice(at + 1)}`) as {
      pagination: { count: number; nextCursor: string | null; since: string };
    };
    ms += answer.ms;
    rows += pagination.count;
    if (pagination.nextCursor === null) return { ms, rows, since: pagination.since };
    path = `/sync/werkbonnen?perPage=100000&cursor=${pagination.nextCursor}`;
  }
}

async function changeSome(primaryUrl: string, workspace: string): Promise<void> {
  const some = (table: string, column: string, from: number, count: number): string =>
    `(select distinct ${column} from app.${table} where workspace_id = $1 order by 1 offset ${from} limit ${count})`;
  const own = `update app.werkbonnen set omschrijving = 'bench' where id in ${some('werkbonnen', 'id', 0, 6)}`;
  await rowsOf(primaryUrl, own, [workspace]);
  const part = `update app.werkbon_uren set medewerker = 'bench' where workspace_id = $1
    and id in (select distinct on (werkbon_id) id from app.werkbon_uren
      where werkbon_id in ${some('werkbon_uren', 'werkbon_id', 1000, 4)})`;
  await rowsOf(primaryUrl, part, [workspace]);
}

/** Rows of the workspace, and the buffers of a pass: of the statements that find the changed rows of everything. */
async function cost(
  { readerUrl }: Stage,
  workspace: string,
): Promise<{ workOrders: number; parts: number; buffers: number }> {
  const resource = loadResources('').find(({ name }) => name === 'werkbonnen') as Resource;
  const { changed: sections } = compileSyncStatements(resource) as SyncStatements;
  const client = new pg.Client(readerUrl);
  await client.connect();
  try {
    await client.query("select set_config('gateway.workspace_id', $1, false)", [workspace]);
    const next = await client.query<{ id: string }>('select pg_snapshot_xmin(pg_current_snapshot())::text as id');
    const since = next.rows[0]?.id as string;
    const values: Readonly<Record<string, string | number>> = { workspace, since, limit: 100 };
    let buffers = 0;
    for (const { find } of sections) {
      const { text, parameters } = find.all;
      const literals = parameters.map((name) => pg.escapeLiteral(String(values[name])));
      await client.query('begin');
      await client.query(guardOf(find.all).text, [workspace]);
      await client.query(`prepare measured as ${text}`);
      const { rows } = await client.query<{ 'QUERY PLAN': [{ Plan: Record<string, number> }] }>(
        `explain (analyze, buffers, timing off, format json) execute measured (${literals.join(', ')})`,
      );
      await client.query('deallocate measured');
      await client.query('commit');
      const plan = rows[0]?.['QUERY PLAN'][0].Plan ?? {};
      buffers += (plan['Shared Hit Blocks'] ?? 0) + (plan['Shared Read Blocks'] ?? 0);
    }
    const views = ['werkbonnen', 'werkbonnen_handelingen', 'werkbonnen_uren'];
    const text = `select ${views.map((view) => `(select count(*)::int from gateway.${view})`).join(', ')}`;
    const counts = await client.query<number[]>({ text, rowMode: 'array' });
    const [workOrders = 0, actions = 0, hours = 0] = counts.rows[0] ?? [];
    return { workOrders, parts: actions + hours, buffers };
  } finally {
    await client.end();
  }
}
