import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { urlAs } from '../../demo/cluster/passwords.js';
import { freePort } from '../../demo/cluster/ports.js';
import { type Child, runToEnd, startChild } from '../child.js';
import type { DatabaseTarget } from '../database-writer.js';
import type { DatabaseWriteLoad } from '../database-writers-process.js';
import { installedWrk } from '../load.js';
import type { Options } from '../options.js';
import { platformatic } from '../peers.js';
import { type CaseResult, figure, type Table, type Verdict } from '../result.js';
import { alternate, median, pairedRatio } from '../rounds.js';
import { rowsOf, type Stage } from '../stage.js';
import { type HttpTarget, runWrites, type WriteLoad, type WriteResult } from '../write-load.js';

/** As many as the gateway has connections to the primary. */
const connections = 4;
/** Short turns, because writes make the data grow. */
const secondsMax = 3;
/**
 * Begins each turn, not counted. The bare program compiles its code meanwhile, and a server the code that it lost: V8 collects
 * the heap of a process that has rested for some seconds, and discards compiled code that no live object needs. After a minute's
 * rest creates took the gateway 1,400 µs in the first second, 420 to 550 some 3,000 writes later.
 */
const leadInSeconds = 4;
/** Before the first turn; servers compile their code meanwhile: a create took the gateway 1,380 µs after 2,000 writes, 580 after 6,000, 500 after 14,000; with Node.js 24 half as much as the primary only after 20,000. */
const warmUpWrites = 25_000;
const goals = { perSecond: 0.8, p99: 1.25 };
const databaseWriters = new URL('../database-writers-process.js', import.meta.url);

/** A server, or PostgreSQL itself. */
type Contender = { readonly name: string } & (
  | { readonly origin: string; readonly target: HttpTarget; readonly serverPid: number }
  | { readonly target: DatabaseTarget }
);

/** The work of a turn, the same for all contenders. */
interface Task {
  readonly wrk: string;
  readonly kind: 'create' | 'update';
  readonly customers: readonly string[];
  readonly stage: Stage;
}

/** Creates and updates of installations, beside the same statements in one pipelined transaction, and beside Platformatic's POST. */
export async function writesCase(stage: Stage, options: Options): Promise<CaseResult> {
  const wrk = installedWrk();
  if (wrk === null) return { verdicts: [], tables: [], skipped: ['The case writes needs wrk.'] };
  const text = 'select id from app.klanten where workspace_id = $1 order by id limit $2';
  const customers = (await rowsOf(stage.primaryUrl, text, [stage.workspace, String(connections)])).map(
    ([id]) => id as string,
  );
  const [whole, ...parts] = await databaseContenders(stage);
  const bare = await startBareServer(stage, whole.target, customers);
  const peer = await startPlatformatic(stage);
  try {
    const both = [gatewayOf(stage), whole, bare.contender, ...parts];
    const creates = await compare({ wrk, kind: 'create', customers, stage }, [...both, ...peer.contenders], options);
    const updates = await compare({ wrk, kind: 'update', customers, stage }, both, options);
    return {
      verdicts: [...creates.verdicts, ...updates.verdicts],
      tables: [creates.table, updates.table],
      skipped: peer.skipped,
    };
  } finally {
    await Promise.all([bare.stop(), peer.stop()]);
  }
}

function gatewayOf({ origin, token, gatewayPid }: Stage): Contender {
  const headers = { authorization: `Bearer ${token}` };
  const target = { path: '/api/v1/installaties', headers, customer: 'customerId', members: {}, makesIds: false };
  return { name: 'gateway', origin, target, serverPid: gatewayPid };
}

/** The whole transaction first; then without one of its parts, whose cost is the difference. */
async function databaseContenders({ primaryUrl, workspace }: Stage) {
  const text = 'select id from gateway.api_tokens where workspace_id = $1 limit 1';
  const [[tokenId = ''] = []] = await rowsOf(primaryUrl, text, [workspace]);
  const whole = {
    url: urlAs(primaryUrl, 'gateway_writer'),
    tokenId,
    hasIdempotency: true,
    hasAudit: true,
    hasPosition: true,
  };
  return [
    { name: 'bare pg, the same statements', target: whole },
    { name: 'bare pg without idempotency', target: { ...whole, hasIdempotency: false } },
    { name: 'bare pg without audit entry', target: { ...whole, hasAudit: false } },
    { name: 'bare pg without position', target: { ...whole, hasPosition: false } },
  ] as const;
}

const answersMsMax = 20_000;

/** The bare program behind HTTP: no server in Node.js can do the same with less. */
async function startBareServer(
  { workspace }: Stage,
  { url, tokenId }: DatabaseTarget,
  customers: readonly string[],
): Promise<{ contender: Contender; stop(): Promise<void> }> {
  const port = await freePort();
  const settings = { DATABASE_URL: url, WORKSPACE: workspace, TOKEN_ID: tokenId, CUSTOMERS: customers.join(' ') };
  const child = startChild(new URL('../peers/bare-writes.js', import.meta.url), [], {
    NODE_ENV: 'production',
    PORT: String(port),
    ...settings,
  });
  const origin = `http://127.0.0.1:${port}`;
  const target = { path: '/installaties', headers: {}, customer: 'customerId', members: {}, makesIds: false };
  if (!(await answers(child, origin))) throw new Error('The bare server does not answer.');
  return { contender: { name: 'bare node:http + pg', origin, target, serverPid: child.pid }, stop: () => child.stop() };
}

/** Whether the server answers in time. */
async function answers(child: Child, url: string): Promise<boolean> {
  for (const deadline = Date.now() + answersMsMax; Date.now() < deadline && child.running; await sleep(100))
    if ((await fetch(url).catch(() => null))?.ok) return true;
  return false;
}

interface Peer {
  readonly contenders: readonly Contender[];
  readonly skipped: readonly string[];
  stop(): Promise<void>;
}

/** Platformatic DB on the primary; its POST knows neither keys nor audit entries. */
async function startPlatformatic({ primaryUrl, ...stage }: Stage): Promise<Peer> {
  const folder = mkdtempSync(join(tmpdir(), 'gateway-bench-writes-'));
  const clear = (): void => rmSync(folder, { recursive: true, force: true });
  try {
    const port = await freePort();
    const peer = platformatic({ ...stage, primaryUrl, replicaUrl: primaryUrl });
    const { program, args = [], env = {} } = peer.launch(port, folder);
    const child = startChild(program, args, { NODE_ENV: 'production', PORT: String(port), ...env });
    const stop = async (): Promise<void> => {
      await child.stop();
      clear();
    };
    const origin = `http://127.0.0.1:${port}`;
    const members = { workspaceId: stage.workspace, lmraVerplicht: false, version: '1' };
    const target = { path: '/appInstallaties/', headers: {}, customer: 'klantId', members, makesIds: true };
    if (await answers(child, `${origin}/documentation/json`))
      return { contenders: [{ name: peer.name, origin, target, serverPid: child.pid }], skipped: [], stop };
    await stop();
    throw new Error('it does not answer');
  } catch (error) {
    clear();
    return {
      contenders: [],
      skipped: [`Platformatic DB did not write: ${(error as Error).message}`],
      stop: async () => {},
    };
  }
}

/** One turn of a contender; the writes of the lead-in do not count. */
async function turn(
  contender: Contender,
  { wrk, kind, customers, stage: { workspace, primaryPid } }: Task,
  seconds: number,
): Promise<WriteResult> {
  const common = { kind, connections, customers, seconds };
  if (!('origin' in contender)) {
    const load: DatabaseWriteLoad = { ...common, target: contender.target, workspace, primaryPid, leadInSeconds };
    return JSON.parse(await runToEnd(databaseWriters, [JSON.stringify(load)], {})) as WriteResult;
  }
  const { origin, target, serverPid } = contender;
  const load: WriteLoad = { ...common, origin, target };
  await runWrites(wrk, { ...load, seconds: leadInSeconds }, serverPid, primaryPid);
  return runWrites(wrk, load, serverPid, primaryPid);
}

/** The first contender is the gateway, the second the reference. */
async function compare(
  task: Task,
  contenders: readonly Contender[],
  { rounds, seconds }: Options,
): Promise<{ verdicts: Verdict[]; table: Table }> {
  const { kind } = task;
  const turnSeconds = Math.min(seconds, secondsMax);
  for (const contender of contenders.filter((each) => 'origin' in each))
    for (let writes = 0; writes < warmUpWrites; ) writes += (await turn(contender, task, leadInSeconds)).writes * 2;
  const results = await alternate(contenders, rounds, (contender, round) => {
    process.stderr.write(`  ${kind}s: round ${round + 1} of ${rounds}, ${contender.name}\n`);
    return turn(contender, task, turnSeconds);
  });
  const [ours = [], bare = []] = results;
  const middle = (runs: readonly WriteResult[], of: (run: WriteResult) => number): string =>
    figure(median(runs.map(of)));
  const rates = (runs: readonly WriteResult[]): number[] => runs.map(({ perSecond }) => perSecond);
  const tails = (runs: readonly WriteResult[]): number[] => runs.map(({ p99Ms }) => p99Ms);
  const what = `${kind === 'create' ? 'Creates' : 'Updates'} against the same statements, pipelined`;
  const verdicts: Verdict[] = [
    {
      what: `${what}: writes/s`,
      value: pairedRatio(rates(ours), rates(bare)),
      goal: goals.perSecond,
      bound: 'at least',
      unit: '×',
    },
    {
      what: `${what}: p99`,
      value: pairedRatio(tails(ours), tails(bare)),
      goal: goals.p99,
      bound: 'at most',
      unit: '×',
    },
  ];
  const rows = contenders.map(({ name }, i) => {
    const runs = results[i] as WriteResult[];
    const ratio = figure(pairedRatio(rates(ours), rates(runs)));
    return [
      name,
      middle(runs, (run) => run.perSecond),
      middle(runs, (run) => run.p50Ms),
      middle(runs, (run) => run.p99Ms),
      middle(runs, (run) => run.serverCpuUs ?? Number.NaN),
      middle(runs, (run) => run.primaryCpuUs),
      middle(runs, (run) => run.clientCpuUs),
      ratio,
    ];
  });
  const table = {
    title: `${kind === 'create' ? 'Creating' : 'Updating'} installations`,
    note: `wrk, ${connections} connections, each with a thread of its own, ${rounds} turns of ${turnSeconds} s each, after ${leadInSeconds} s that do not count, medians. The bare program runs the gateway's statements as its role, the WAL position after COMMIT with them, so with the same synchronous_commit and the same wait for the disk, and sends all of a write before the first is answered. The difference between its rows is the cost of a part. It speaks no HTTP, checks no token, limit or body, and renders no answer: the processor time of the gateway is what it leaves out. The bare server is the same program behind node:http, with the gateway's headers and a body as constants: it shows how much HTTP and a process of its own cost. CPU is per write. Platformatic writes one row, without key, audit entry or tenant wall.`,
    head: ['', 'writes/s', 'p50, ms', 'p99, ms', 'server CPU, µs', 'primary CPU, µs', 'client CPU, µs', 'gateway ×'],
    rows,
  };
  return { verdicts, table };
}
