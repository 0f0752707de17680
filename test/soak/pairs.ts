import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { commandLine } from '../support/command-line.js';
import { until } from '../support/patience.js';
import { templateName } from '../support/template.js';
import type { Figures } from './figures.js';
import { again, startWorld, type Verdict, verdictsOf, type World } from './pairs-world.js';

/** A thing that a client, an operator or a fault does; it ends with everything mended. */
interface Operation {
  /** The verdicts about servers that it can be the cause of. */
  readonly mayCause: readonly Verdict[];
  /** The servers are made again afterwards. */
  readonly spoils?: boolean;
  run(world: World): Promise<unknown>;
}

const holdMs = 1500;
const wellMsMax = 90_000;

const admin = ({ primary }: World): string => primary.url(templateName);
/** Repeated, as an operator would while the primary changes. */
const command = (world: World, args: string[], settings: object = {}): Promise<void> =>
  again(async () => {
    const { code, stderr } = await commandLine(args, { adminUrl: admin(world), ...settings });
    if (code !== 0) throw new Error(`${args.join(' ')}: ${stderr}`);
  });
const workerOf = ({ serving: { child } }: World): number =>
  Number(readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').trim().split(/\s+/)[0]);
const both = (world: World, work: (client: World['clients'][number]) => Promise<unknown>) =>
  Promise.all(world.clients.map(work));

const operations: Readonly<Record<string, Operation>> = {
  scrape: {
    mayCause: [],
    run: async ({ serving }) => {
      for (let times = 0; times < 75; times++)
        await Promise.all([fetch(`${serving.opsUrl}/metrics`).then((response) => response.text()), sleep(20)]);
    },
  },
  reload: { mayCause: [], run: ({ reload, released }) => reload(released, /"reloaded"/) },
  'broken reload': { mayCause: [], run: ({ reload }) => reload('{', /"reload_refused"/) },
  kill: {
    mayCause: [],
    run: async (world) => {
      process.kill(workerOf(world), 'SIGKILL');
      await sleep(holdMs);
    },
  },
  'wall key': {
    mayCause: [],
    run: async (world) => {
      const key = randomBytes(32).toString('base64');
      await command(world, ['migrate', '--wall-key'], { wallKey: key });
      writeFileSync(world.keyFile, key);
      await world.reload(world.released, /"reloaded"/);
    },
  },
  views: {
    mayCause: ['refused'],
    run: async (world) => {
      await command(world, ['views', '--drop', '--tables', 'app.klanten']);
      await sleep(500);
      await command(world, ['views', '--create']);
    },
  },
  lock: {
    mayCause: ['locked'],
    run: async (world) => {
      await again(async () => {
        const holder = new pg.Client(admin(world));
        holder.on('error', () => undefined);
        await holder.connect();
        await holder.query('begin; lock table app.werkbonnen in access exclusive mode; select pg_switch_wal()');
        await sleep(2 * holdMs);
        await holder.end();
      });
    },
  },
  'slow plan': {
    mayCause: ['locked'],
    run: async ({ sql }) => {
      await sql(`comment on schema fault is '10'`);
      await sleep(holdMs);
      await sql(`comment on schema fault is '0'`);
    },
  },
  failover: {
    mayCause: ['replica', 'primary'],
    spoils: true,
    run: async (world) => {
      const { cluster } = world.setUp;
      const old = cluster.primary;
      const [first, second] = cluster.replicas;
      if (first === undefined || second === undefined || world.primary !== old) return;
      world.primary = first;
      await old.stop('fast'); // which sends its last WAL first
      await first.promote();
      const { port, password } = new URL(first.url());
      const source = `host=127.0.0.1 port=${port} user=postgres password=${password} sslmode=disable`;
      await second.configure({ primary_conninfo: `${source} application_name=${second.name}` });
      writeFileSync(join(old.dir, 'standby.signal'), '');
      await old.start();
      await old.configure({ primary_conninfo: `${source} application_name=${old.name}` });
      await sleep(holdMs);
    },
  },
  Redis: {
    mayCause: ['redis'],
    run: async ({ redis }) => {
      await redis.stop();
      await sleep(holdMs);
      await redis.start();
    },
  },
  pooler: {
    mayCause: ['replica'],
    run: async ({ pooler }) => {
      pooler?.setMode('transaction');
      await sleep(holdMs);
      pooler?.setMode('session');
    },
  },
  'large record': {
    mayCause: [],
    run: async (world) => {
      const { sql, setUp } = world;
      const ofOne = `where id = (select id from app.installaties where klant_id = '${setUp.customerId}' limit 1)`;
      await sql(`update app.installaties set interne_notities = repeat('x', 8000000) ${ofOne}`);
      await sleep(500); // for the replicas
      await both(world, (client) => client.page('/installaties?perPage=1000'));
      await sql(`update app.installaties set interne_notities = null ${ofOne}`);
    },
  },
  walk: { mayCause: [], run: (world) => both(world, (client) => client.walk('/werkbonnen')) },
  sync: { mayCause: [], run: (world) => both(world, (client) => client.walk('/sync/klanten')) },
  write: { mayCause: [], run: (world) => both(world, (client) => client.write()) },
};

/** Each pair of operations `rounds` times at random offsets under a modest load of two workspaces; PAIRS="a×b c×d" names some. */
export async function soakPairs(rounds = 2): Promise<Figures> {
  const names = Object.keys(operations);
  const named = process.env.PAIRS?.split(',').map((pair) => pair.trim());
  const pairs = names
    .flatMap((one, i) => names.slice(i).map((other) => [one, other] as const))
    .filter(([one, other]) => named?.some((pair) => pair === `${one}×${other}` || pair === `${other}×${one}`) ?? true);
  const broken: Record<string, string> = {};
  let world: World | undefined;
  try {
    for (const [one, other] of pairs)
      for (let round = 0; round < rounds; round++) {
        world ??= await startWorld();
        const faults = await tryPair(world, [operations[one] as Operation, operations[other] as Operation]);
        const causes = world.serving.log().match(/^.*"msg":"(request_failed|crashed)".*$/gm) ?? [];
        if (faults.length > 0) console.error(causes.slice(-3).join('\n'));
        if (faults.length > 0) broken[`${one} × ${other}`] = faults.slice(0, 3).join('; ');
        console.error(new Date().toISOString(), one, '×', other, faults.length === 0 ? 'ok' : faults.join('\n  '));
        if (faults.length === 0 && ![one, other].some((name) => operations[name]?.spoils)) continue;
        await world.stop();
        world = undefined;
      }
  } finally {
    await world?.stop();
  }
  const ok = pairs.length > 0 && Object.keys(broken).length === 0;
  return { ok, figures: { Pairs: pairs.length, 'Rounds of each': rounds, ...broken } };
}

/** Runs the pair and waits until everything is as before. Returns every promise that was broken meanwhile. */
async function tryPair(world: World, pair: readonly [Operation, Operation]): Promise<string[]> {
  const { violations } = world;
  violations.clear();
  const allowed = new Set(pair.flatMap(({ mayCause }) => mayCause));
  let isOver = false;
  const watching = (async () => {
    while (!isOver) {
      for (const { kind, text } of await verdictsOf(world))
        if (!allowed.has(kind)) violations.add(`a verdict that nothing caused: ${text}`);
      await sleep(200);
    }
  })();
  await Promise.all(
    pair.map(async ({ run }) => {
      await sleep(Math.random() * 1000);
      await run(world).catch((error: Error) => violations.add(`the operation failed: ${error.message}`));
    }),
  );
  const isWell = async (): Promise<boolean> => (await verdictsOf(world)).length === 0;
  if (!(await until(isWell, wellMsMax, 250)))
    violations.add(`not as before: ${JSON.stringify(await verdictsOf(world))}`);
  await Promise.all(world.clients.map((client) => client.walk('/klanten')));
  isOver = true;
  await watching;
  return [...violations];
}
