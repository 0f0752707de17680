import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import type { PgNode } from '../../../demo/cluster/node.js';
import { readProject } from '../../../src/base/paths.js';
import { words } from '../words.js';
import { type Fault, type Route, routes, type World } from './world.js';

/** A row of faults.json has commands of ours for `make` and `cure`, lines of `verbs`, or SQL on the primary. */
interface FaultRow {
  readonly name: string;
  readonly part: string | null;
  readonly words: string;
  /** "all", or routes. */
  readonly harms: string;
  readonly make: string;
  readonly cure: string;
  /** The page has the cure so. */
  readonly remedy?: string;
}

/** Reads a part of docs/operate/troubleshooting.md, from its anchor to the next heading. */
export function partOf(anchor: string): string {
  const [, part = ''] = readProject('docs/operate/troubleshooting.md').split(`<a id="${anchor}"></a>`);
  return part.split('\n#')[0] as string;
}

type Verb = (world: World, rest: string) => unknown;

const onNodes =
  (nodesOf: (world: World) => PgNode[]): Verb =>
  (world, rest) => {
    const [, verb, text] = /^(\w+) ?(.*)$/.exec(rest) as unknown as [string, string, string];
    const [setting, value = null] = text.split(' ');
    const acts: Readonly<Record<string, (node: PgNode) => unknown>> = {
      ...{ stop: (node) => node.stop(), start: (node) => node.start(), kill9: (node) => node.kill9() },
      ...{ freeze: (node) => node.freeze(), thaw: (node) => node.thaw(), query: (node) => node.query(text) },
      set: (node) => node.configure({ [setting as string]: value }),
      alter: async (node) => {
        await node.query(`alter system ${text}`);
        await node.query('select pg_reload_conf()');
      },
    };
    return Promise.all(nodesOf(world).map(acts[verb] as (node: PgNode) => unknown));
  };

let throttling: NodeJS.Timeout | undefined;
const unbroken = readProject('config/resources/klanten.json');

const verbs: Readonly<Record<string, Verb>> = {
  primary: onNodes(({ setUp }) => [setUp.cluster.primary]),
  replica: onNodes(({ setUp }) => setUp.cluster.replicas.slice(1)),
  replicas: onNodes(({ setUp }) => [...setUp.cluster.replicas]),
  wait: () => sleep(5000),
  /** Each transaction of the app has a statement, which may wait, and lasts until its connection ends. */
  app: async ({ app, setUp, endAll }, rest) => {
    if (rest === 'end') return endAll();
    for (const text of rest.split(' & ')) {
      const session = await app();
      await session.query('begin');
      const done = session.query(text.replace('CUSTOMER', setUp.customerId)).catch(() => undefined);
      await Promise.race([done, sleep(500)]);
    }
  },
  locked: async ({ setUp }) => {
    const [query = ''] = /select pid.*?;/s.exec(partOf('locked')) ?? [];
    for (const { pid } of await setUp.sql<{ pid: number }>(query))
      await setUp.sql(`select pg_terminate_backend(${pid})`);
  },
  /** The role has no connection, and gets none. */
  role: async ({ setUp }, role) => {
    await setUp.sql(`alter role ${role} connection limit 0`);
    await setUp.caughtUp();
    for (const node of [setUp.cluster.primary, ...setUp.cluster.replicas])
      await node.query('select pg_terminate_backend(pid) from pg_stat_activity where usename = $1', [role]);
  },
  pooler: ({ pooler }, rest) => {
    if (rest === 'transaction' || rest === 'session') pooler?.setMode(rest);
    else pooler?.process.kill(rest as NodeJS.Signals);
  },
  redis: async ({ redis }, rest) => {
    if (rest === 'stop' || rest === 'start') return redis[rest]();
    if (rest.startsWith('SIG')) return redis.process.kill(rest as NodeJS.Signals);
    const client = new Redis(redis.url);
    const line = rest === 'alone' ? ['replicaof', 'no', 'one'] : rest.split(' ');
    await client.call(...(line as [string])).finally(() => client.disconnect());
  },
  /** Gives the members of customers as they are or with another beginning, and reloads the gateway. */
  definition: ({ definitions, serving }, rest) => {
    const text = rest === '{' ? rest : unbroken.replace('"fields": {', rest === '' ? '$&' : rest);
    writeFileSync(join(definitions, 'klanten.json'), text);
    process.kill(serving.child.pid as number, 'SIGHUP');
  },
  worker: ({ children }, signal) => process.kill(children()[0] as number, signal),
  log: ({ serving }, rest) => serving.child.stdout?.[rest as 'pause' | 'resume'](),
  flood: ({ send }) => void Array.from({ length: 300 }, () => send('/werkbonnen?perPage=100000')),
  /** The workers run for a tenth of the time. */
  throttle: ({ children }, rest) => {
    const toAll = (signal: NodeJS.Signals) => children().map((pid) => process.kill(pid, signal));
    clearInterval(throttling);
    if (rest === 'off') return sleep(1000).then(() => toAll('SIGCONT'));
    const stopped = (): void => {
      toAll('SIGSTOP');
      setTimeout(toAll, 900, 'SIGCONT');
    };
    throttling = setInterval(stopped, 1000);
    return null;
  },
};

async function act(world: World, line: string): Promise<unknown> {
  const [, verb = '', rest = ''] = /^(\w+) ?(.*)$/s.exec(line) ?? [];
  return Object.hasOwn(verbs, verb) ? verbs[verb]?.(world, rest) : world.run(line);
}

const rows = JSON.parse(readProject('test/support/oncall/faults.json')) as FaultRow[];

/** Faults that change views come first, because `migrate` makes the reference app's views in place of the cluster's. */
export const faults: Readonly<Record<string, Fault>> = Object.fromEntries(
  rows.map(({ name, make, cure, harms, ...row }) => [
    name,
    {
      ...{ ...row, words: new RegExp(row.words), harms: harms === 'all' ? routes : (words(harms) as Route[]) },
      ...{ make: (world: World) => act(world, make), cure: (world: World) => act(world, cure) },
    },
  ]),
);

/** These faults come together. */
export const pairs: readonly (readonly [string, string])[] = [
  ['a transaction of the app holds a lock', 'a replica is stopped'],
  ['a view is renamed', 'the primary is stopped'],
  ['Redis is stopped', 'a replica is frozen'],
  ['a job demotes the owners', 'replay is paused'],
  ['the app holds the row of a customer', 'a view is renamed'],
  ['a worker is killed', 'Redis is a replica'],
  ['a definition is broken at a reload', 'the primary is read-only'],
];
