import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { hashToken, makeToken } from '../../src/serve/http/token-format.js';
import type { Clients, ClientsResult } from '../clients-process.js';
import { runToEnd } from '../processes.js';
import type { Options } from '../report.js';
import { figure, type Measured, type Table } from '../report.js';
import { alternate, middle, pairedRatios } from '../rounds.js';
import { eventLoopDelayMs, rowsOf, type Stage } from '../stage.js';

const idsAsked = 1000;
const streamsAtOnce = 8;
/** Pages at a time: as many as PostgreSQL has connections for large pages. */
const workspaces = 4;
const workOrders = 20_000;
/** Lowest priority, so that the measured client, which has the same processors, does not wait for the readers of the pages. */
const priority = 19;
/** Pages begin before the first single record, and end after the last. */
const [leadSeconds, trailSeconds] = [1, 0.5];
const program = new URL('../clients-process.js', import.meta.url);

interface Turn {
  readonly details: ClientsResult;
  readonly pages: ClientsResult | null;
  readonly delayMs: number;
}

/** Measures single records of a workspace, alone and beside eight pages of 10,000 work orders at a time of four others. */
export async function togetherCase(stage: Stage, { rounds, seconds }: Options): Promise<Measured> {
  const tokens: string[] = [];
  for (let n = 1; n <= workspaces; n++) tokens.push(await workspaceOf(stage, n));
  const { origin, other, replicaUrl } = stage;
  const text = 'select id from app.installaties where workspace_id = $1 order by id limit $2';
  const ids = await rowsOf(replicaUrl, text, [other.workspace, String(idsAsked)]);
  const detailSeconds = 3 * seconds; // of 300 requests the third slowest would be the p99
  const paced: Clients = {
    kind: 'paced',
    origin,
    tokens: [other.token],
    paths: ids.map(([id]) => `/api/v1/installaties/${id}`),
    seconds: detailSeconds,
  };
  const reading: Clients = {
    kind: 'pages',
    origin,
    tokens: Array.from({ length: streamsAtOnce }, (_, n) => tokens[n % tokens.length] as string),
    paths: ['/api/v1/werkbonnen?perPage=10000'],
    seconds: leadSeconds + detailSeconds + trailSeconds,
  };
  const details = (): Promise<ClientsResult> => runToEnd(program, paced);
  const turns: Readonly<Record<string, () => Promise<Omit<Turn, 'delayMs'>>>> = {
    alone: async () => ({ details: await details(), pages: null }),
    'beside eight pages': async () => {
      const [pages, asked] = await Promise.all([
        runToEnd<ClientsResult>(program, reading, priority),
        sleep(leadSeconds * 1000).then(details),
      ]);
      return { details: asked, pages };
    },
  };
  const results = await alternate(Object.entries(turns), rounds, async ([name, turn]): Promise<Turn> => {
    process.stderr.write(`  details ${name}\n`);
    await eventLoopDelayMs(stage);
    return { ...(await turn()), delayMs: await eventLoopDelayMs(stage) };
  });
  const table: Table = {
    title: 'Details beside pages',
    note: `100 details a second of a workspace at a fixed pace, alone and beside eight clients that read pages of 10,000 work orders of ${workspaces} other workspaces. The gateway, PostgreSQL and the clients share the machine's processors, of which eight pages can take all. Medians of ${rounds} turns of ${detailSeconds} s.`,
    head: ['', 'details p50, ms', 'details p99, ms', 'details not 200', 'pages p50, ms', 'event-loop delay p99, ms'],
    rows: Object.keys(turns).map((name, i) => {
      const runs = results[i] as Turn[];
      const of = (value: (turn: Turn) => number): string => figure(middle(runs, value));
      const failures = runs.reduce((sum, { details: { failures: count } }) => sum + count, 0);
      return [
        name,
        ...[of((turn) => turn.details.p50Ms), of((turn) => turn.details.p99Ms), String(failures)],
        ...[of((turn) => turn.pages?.p50Ms ?? Number.NaN), of((turn) => turn.delayMs)],
      ];
    }),
  };
  const ratio = pairedRatios(results[1], results[0], (turn) => turn.details.p99Ms);
  return { figures: { 'Details beside eight pages of 10,000 against alone: p99': ratio }, tables: [table] };
}

/** Makes a workspace with its work orders, or finds the one of an earlier run; resolves with a token. */
async function workspaceOf({ primaryUrl, replicaUrl }: Stage, number: number): Promise<string> {
  const workspace = `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`;
  const [id, token] = [randomUUID(), makeToken()];
  const client = new pg.Client(primaryUrl);
  await client.connect();
  try {
    const { rowCount } = await client.query('select from app.workspaces where id = $1', [workspace]);
    if (rowCount === 0)
      await client.query(`begin;
        insert into app.workspaces (id, naam) values ('${workspace}', 'Bench');
        insert into app.users (id, workspace_id, naam, email, rol) values ('${workspace}', '${workspace}', 'Bench', 'bench@example.com', 'owner');
        insert into app.klanten (id, workspace_id) values ('${workspace}', '${workspace}');
        insert into app.installaties (id, workspace_id, klant_id, naam) values ('${workspace}', '${workspace}', '${workspace}', 'Bench');
        insert into app.werkbonnen (id, workspace_id, installatie_id, nummer, datum, status, omschrijving)
          select gen_random_uuid(), '${workspace}', '${workspace}', 'WB-' || n, date '2018-01-01' + n / 8, 'gefactureerd', 'Periodiek onderhoud'
          from generate_series(1, ${workOrders}) n;
        insert into app.werkbon_handelingen (id, workspace_id, werkbon_id, volgorde, code, omschrijving)
          select gen_random_uuid(), '${workspace}', id, n, 'LEK-01', 'Lekdichtheidscontrole' from app.werkbonnen, generate_series(1, 2) n
          where workspace_id = '${workspace}';
        commit`);
    const insert =
      'insert into app.api_tokens (id, workspace_id, created_by, naam, token_hash, scopes) values ($1, $2, $2, $3, $4, $5)';
    await client.query(insert, [id, workspace, 'bench', hashToken(token), ['read:werkbonnen']]);
    // Without a visibility map no scan is index-only.
    for (const table of ['werkbonnen', 'werkbon_handelingen']) await client.query(`vacuum (analyze) app.${table}`);
  } finally {
    await client.end();
  }
  const replayed = async (): Promise<boolean> =>
    (await rowsOf(replicaUrl, 'select id from app.api_tokens where id = $1', [id])).length > 0;
  while (!(await replayed())) await sleep(50);
  return token;
}
