import suite from 'ava';
import pg from 'pg';
import type { PgNode } from '../../demo/cluster/node.js';
import { projectText } from '../../src/base/paths.js';
import type { StatusReport } from '../../src/serve/ops/status.js';
import { commandLine } from '../support/command-line.js';
import { type FaultCluster, type FaultGateway, faultCluster } from '../support/fault-cluster.js';
import { readPage } from '../support/page-reader.js';
import { templateName } from '../support/template.js';
import { eventually } from '../support/workspace.js';

// Each remedy of docs/operate/troubleshooting.md that can be run: the fault is made, the status names it and leads to its part, the
// remedy is run as it is written there, and all is well.

let setUp: FaultCluster;
let gateway: FaultGateway;
let token: string;
suite.before(async () => {
  setUp = await faultCluster();
  gateway = await setUp.gateway({ lagMaxMs: 6000, fitnessIntervalMs: 1000 });
  token = await setUp.token();
});
suite.after.always(() => setUp?.stop());

interface Remedy {
  readonly fault: string;
  /** Of the part of the page. */
  readonly part: string;
  readonly sentence: RegExp;
  /** As the part has it. */
  readonly remedy: string;
  readonly make: () => Promise<unknown>;
  readonly run: (remedy: string) => Promise<unknown>;
}

const replica = (i: number): PgNode => setUp.cluster.replicas[i] as PgNode;
const sql = (text: string): Promise<unknown> => setUp.sql(text);
const read = (path = '/klanten?perPage=1') => readPage(gateway.url(path), { token });

async function command(remedy: string): Promise<void> {
  const args = remedy.replace('gateway ', '').replace('DIR', 'sql/views').split(' ');
  const adminUrl = setUp.cluster.primary.url(templateName);
  const { code, stderr } = await commandLine(args, { ...setUp.settings(), adminUrl });
  if (code !== 0) throw new Error(stderr);
}

async function holdLock(): Promise<void> {
  const app = new pg.Client(setUp.cluster.primary.url(templateName));
  app.on('error', () => undefined); // it is ended by the remedy
  await app.connect();
  await app.query('begin; lock table app.klanten in access exclusive mode; select pg_switch_wal()');
  await read();
}

async function endHolders(remedy: string): Promise<void> {
  const [query = ''] = /select pid.*?;/s.exec(partOf('locked')) ?? [];
  for (const { pid } of await setUp.sql<{ pid: number }>(query)) await sql(remedy.replace('pid', String(pid)));
}

const refused = (fault: string, sentence: RegExp, change: string): Remedy => ({
  fault,
  part: 'refused',
  sentence,
  remedy: 'gateway migrate --views DIR',
  make: () => sql(change),
  run: command,
});

const remedies: readonly Remedy[] = [
  {
    fault: 'replay is paused',
    part: 'replica-lags',
    sentence: /lags/,
    remedy: 'select pg_wal_replay_resume()',
    make: async () => {
      await replica(0).query('select pg_wal_replay_pause()');
      await sql('create table app.moved as select 1');
    },
    run: (remedy) => replica(0).query(remedy),
  },
  {
    fault: 'a transaction of the app holds a lock',
    part: 'locked',
    sentence: /A lock on .* has held klanten/,
    remedy: 'select pg_terminate_backend(pid)',
    make: holdLock,
    run: endHolders,
  },
  refused('a view was dropped', /klanten are refused/, 'drop view records.klanten cascade'),
  refused('a privilege was revoked', /klanten are refused/, 'revoke select on gateway.klanten_asc from gateway_reader'),
  refused(
    'a view lost its barrier',
    /klanten are refused/,
    'alter view gateway.klanten_asc set (security_barrier = off)',
  ),
  {
    fault: 'a replica is stopped',
    part: 'replica-out',
    sentence: /is not used/,
    remedy: 'Start a server that is stopped',
    make: () => replica(1).stop(),
    run: () => replica(1).start(),
  },
];

/** The text of a part, from its anchor to the next heading. */
function partOf(anchor: string): string {
  const [, part = ''] = projectText('docs/operate/troubleshooting.md').split(`<a id="${anchor}"></a>`);
  return part.split('\n#')[0] as string;
}

const statusNow = async (): Promise<StatusReport> =>
  (await (await fetch(`${gateway.gateway.opsUrl}/status.json`)).json()) as StatusReport;

for (const { fault, part, sentence, remedy, make, run } of remedies)
  suite.serial(`${fault}: the status names it, and its remedy cures`, async (t) => {
    t.true(partOf(part).includes(remedy), 'the page has the remedy');
    await make();
    const isNamed = async (): Promise<boolean> =>
      (await statusNow()).faults.some((each) => sentence.test(each.sentence) && each.link.endsWith(`#${part}`));
    await eventually(t, 'its sentence', isNamed, 60_000);
    await run(remedy);
    await eventually(t, 'the end', async () => (await statusNow()).summary === 'All is well.', 120_000);
    t.is((await read()).status, 200);
  });
