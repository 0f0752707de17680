import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { nodeEnvironment, nodeFlags } from '../../bundle/node-flags.js';
import { freePort } from '../../demo/cluster/ports.js';
import { createToken } from '../../src/cli/tokens.js';
import { adopt, resourcesFolder, viewsFolder } from '../../src/operate/adopt/adoption.js';
import { draftsMax } from '../../src/operate/adopt/tables/subject-choice.js';
import { migrate } from '../../src/operate/migrate/migrations.js';
import { runAsAdmin } from '../../src/postgres/admin.js';
import { cpuMsOf, environmentOf, rssMbOf, startChild } from '../processes.js';
import type { Options } from '../report.js';
import { figure, type Measured } from '../report.js';
import { alternate, middle } from '../rounds.js';
import { rowsOf, type Stage } from '../stage.js';

/** Pause before the memory of a process is read: V8 releases what only the start used some ten seconds after the first answer. */
const restMs = 30_000;
const startMsMax = 60_000;
const settings = ['REPLICA_URLS', 'PRIMARY_URLS', 'DATA_KEYS', 'WALL_KEY', 'RESOURCES_DIR'];
/** Arguments of the program in the image. */
const bundle = fileURLToPath(new URL('../../bundle/gateway.cjs', import.meta.url));

interface Start {
  /** Time from the start of the process to the end of its first whole 200. */
  readonly firstMs: number;
  /** Processor time until the same moment. */
  readonly cpuMs: number;
  readonly idleMb: number;
}

/** A gateway to start: its environment, a path of a list, and a token for it. */
interface Served {
  readonly env: NodeJS.ProcessEnv;
  readonly path: string;
  readonly token: string;
}

/** Measures the start of `serve` up to the first answered read, and its memory at rest; also with as many resources as it can have. */
export async function startCase(stage: Stage, { rounds }: Options): Promise<Measured> {
  const inForce = environmentOf(stage.gatewayPid);
  const env = Object.fromEntries(settings.map((name) => [name, inForce[name]]));
  const one = await startsOf({ env, path: 'installaties', token: stage.token }, rounds);
  const many = await startsOf(await hundred(stage, env), rounds);
  return {
    figures: {
      'Start of serve to the first 200': one.firstMs,
      'Memory of serve at rest': one.idleMb,
      'Start of serve with 100 resources to the first 200': many.firstMs,
      'Memory of serve with 100 resources at rest': many.idleMb,
    },
    tables: [
      {
        title: 'Start and rest',
        note: `Medians of ${rounds} starts; PostgreSQL answers already. Memory is read ${restMs / 1000} s after the first answer, the program of Node included.`,
        head: ['', 'start to first 200, ms', 'CPU until then, ms', 'memory at rest, MB'],
        rows: Object.entries({ gateway: one, 'with 100 drafted resources': many }).map(([name, each]) => [
          name,
          ...[each.firstMs, each.cpuMs, each.idleMb].map(figure),
        ]),
      },
    ],
  };
}

async function startsOf(served: Served, rounds: number): Promise<Start> {
  const { idleMb } = await start(served, restMs); // also reads files and PostgreSQL's catalogs into memory
  const [starts = []] = await alternate([served], rounds, (each) => start(each, 0));
  return { firstMs: middle(starts, ({ firstMs }) => firstMs), cpuMs: middle(starts, ({ cpuMs }) => cpuMs), idleMb };
}

const database = 'hundred';
const names = Array.from({ length: draftsMax }, (_, i) => `things_${i}`);
const app = `
  create table companies (id bigint primary key, name text not null);
  create table staff (id bigint primary key, company_id bigint not null references companies, email text not null, is_owner boolean not null);
  insert into companies values (1, 'North'); insert into staff values (1, 1, 'owner@north.example', true);
  ${names
    .map(
      (
        name,
        i,
      ) => `create table ${name} (id bigint generated always as identity primary key, company_id bigint not null references companies,
        ${i > 0 ? `above_id bigint references ${names[i - 1]},` : ''} number text not null, title text, state text, amount numeric(12, 2), due_on date,
        is_open boolean, size integer, remark text, extra jsonb, seen_at timestamptz, created_at timestamptz not null default now(),
        updated_at timestamptz not null default now(), unique (company_id, number));
      insert into ${name} (company_id, number) select 1, n from generate_series(1, 100) n;`,
    )
    .join('\n')}
  analyze`;

/** Makes a database with 100 tables, drafted and migrated. */
async function hundred(stage: Stage, env: NodeJS.ProcessEnv): Promise<Served> {
  await rowsOf(stage.primaryUrl, `drop database if exists ${database} with (force)`);
  await rowsOf(stage.primaryUrl, `create database ${database}`);
  const url = inDatabase(stage.primaryUrl);
  const folder = mkdtempSync(join(tmpdir(), 'gateway-bench-'));
  stage.onStop(async () => rmSync(folder, { recursive: true }));
  const [viewsDir, resourcesDir] = [join(folder, viewsFolder), join(folder, resourcesFolder)];
  const token = await runAsAdmin(url, async (client) => {
    await client.query(app);
    await adopt(url, { schema: 'public', out: folder, write: [] });
    await migrate(url, { viewsDir, resourcesDir, wallKey: stage.wallKey });
    const scopes = names.map((name) => `read:${name.replace('_', '-')}`);
    return (await createToken(client, { workspaceId: '1', ownerId: '1', name: 'start', scopes, expiresAt: null }))
      .token;
  });
  const urls = ['REPLICA_URLS', 'PRIMARY_URLS'].map((name) => [name, inDatabase(env[name] as string)]);
  return { env: { ...env, ...Object.fromEntries(urls), RESOURCES_DIR: resourcesDir }, path: 'things-7', token };
}

function inDatabase(url: string): string {
  return Object.assign(new URL(url), { pathname: `/${database}` }).href;
}

async function start({ env, path, token }: Served, rest: number): Promise<Start> {
  const port = await freePort();
  const startedMs = performance.now();
  const child = startChild(
    process.execPath,
    [...nodeFlags, bundle, 'serve', '--port', String(port), '--ops-port', '0'],
    {
      ...nodeEnvironment,
      NODE_ENV: 'production',
      LOG_LEVEL: 'warn',
      ...env,
      // Node reads the certificates of that setting before anything else, which takes 50 to 80 ms; nothing here speaks TLS.
      NODE_EXTRA_CA_CERTS: undefined,
    },
  );
  try {
    while (!(await answers(`http://127.0.0.1:${port}/api/v1/${path}?perPage=1`, token))) {
      if (!child.running) throw new Error('serve ended before it served.');
      if (performance.now() - startedMs > startMsMax) throw new Error('serve does not answer.');
      await sleep(5);
    }
    const firstMs = performance.now() - startedMs;
    const cpuMs = cpuMsOf(child.pid);
    await sleep(rest);
    return { firstMs, cpuMs, idleMb: rssMbOf(child.pid) };
  } finally {
    await child.stop();
  }
}

async function answers(url: string, token: string): Promise<boolean> {
  try {
    const response = await fetch(url, { headers: { authorization: `Bearer ${token}` } });
    await response.arrayBuffer();
    return response.status === 200;
  } catch {
    return false; // it does not listen yet
  }
}
