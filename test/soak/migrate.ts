import { randomUUID } from 'node:crypto';
import { appendFileSync, cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { projectRoot } from '../../src/base/paths.js';
import { migrate } from '../../src/operate/migrate/migrations.js';
import { type FaultCluster, faultCluster } from '../support/fault-cluster.js';
import { asInProduction, serveProcess } from '../support/serve-process.js';
import { templateName } from '../support/template.js';
import { wallKey } from '../support/walls.js';
import type { Figures } from './figures.js';

const tables = 60;
const changes = 10;
const waitMsMax = 500;

/** A view of 60 is changed ten times while four clients read and one writes: no request fails, and none waits for half a second. */
export async function soakMigrate(): Promise<Figures> {
  const setUp = await faultCluster({ replicas: 1 });
  const folder = mkdtempSync(join(tmpdir(), 'migrate-'));
  try {
    const { viewsDir, resourcesDir, names } = await addTables(setUp, folder);
    const adminUrl = setUp.cluster.primary.url(templateName);
    const apply = (): Promise<void> => migrate(adminUrl, { viewsDir, resourcesDir, wallKey });
    await apply();
    await setUp.caughtUp();
    const serving = await serveProcess(setUp.settings({ resourcesDir, logLevel: 'warn' }), asInProduction);
    const scopes = ['read:installaties', 'write:installaties', ...names.map((name) => `read:${name}`)];
    const authorization = `Bearer ${await setUp.token({ scopes })}`;
    const load = await startLoad(serving.url, authorization, names, setUp.customerId);
    const startedMs = performance.now();
    for (let i = 0; i < changes; i++) {
      appendFileSync(join(viewsDir, `${names[7]}.sql`), `-- ${i}\n`);
      await apply();
    }
    const seconds = (performance.now() - startedMs) / 1000;
    const { requests, failed, longestMs } = await load.stop();
    serving.child.kill('SIGTERM');
    await serving.exited;
    return {
      ok: failed === 0 && longestMs < waitMsMax,
      figures: {
        Tables: tables,
        'Changes of one view': changes,
        'Seconds for a change': Math.round((seconds / changes) * 100) / 100,
        Requests: requests,
        'of them failed': failed,
        'Longest request (ms)': Math.round(longestMs),
      },
    };
  } finally {
    rmSync(folder, { recursive: true });
    await setUp.stop();
  }
}

/** Tables of the app, with a view, a definition and an index each. */
async function addTables(setUp: FaultCluster, folder: string) {
  const [viewsDir, resourcesDir] = [join(folder, 'views'), join(folder, 'resources')];
  cpSync(join(projectRoot, 'sql/views'), viewsDir, { recursive: true });
  cpSync(join(projectRoot, 'config/resources'), resourcesDir, { recursive: true });
  const names = Array.from({ length: tables - 4 }, (_, i) => `table${i + 10}`);
  for (const name of names) {
    const columns =
      'workspace_id uuid not null, id uuid primary key, naam text, created_at timestamptz not null default now()';
    await setUp.sql(`create table app.${name} (${columns})`);
    await setUp.sql(`create index on app.${name} (workspace_id, created_at, id)`);
    await setUp.sql(
      `insert into app.${name} (workspace_id, id, naam) select id, gen_random_uuid(), 'x' from app.workspaces`,
    );
    writeFileSync(
      join(viewsDir, `${name}.sql`),
      `-- A table of the soak.\ncreate view records.${name} as select workspace_id, id, naam, created_at from app.${name};\n`,
    );
    writeFileSync(join(resourcesDir, `${name}.json`), JSON.stringify(definitionOf(name)));
  }
  return { viewsDir, resourcesDir, names };
}

/** Four clients that read, and one that writes, until they are stopped. */
async function startLoad(url: string, authorization: string, names: readonly string[], customerId?: string) {
  let [requests, failed, longestMs, isOver] = [0, 0, 0, false];
  const send = async (path: string, init: RequestInit = {}): Promise<void> => {
    const startedMs = performance.now();
    const headers = { authorization, 'content-type': 'application/json', 'idempotency-key': randomUUID() };
    const reply = await fetch(`${url}/api/v1${path}`, { headers, ...init });
    await reply.text();
    requests++;
    if (!reply.ok) failed++;
    longestMs = Math.max(longestMs, performance.now() - startedMs);
  };
  const until = async (work: () => Promise<void>): Promise<void> => {
    while (!isOver) await work();
  };
  const any = (): string => names[Math.floor(Math.random() * names.length)] as string;
  const body = JSON.stringify({ customerId, naam: 'soak' });
  await send('/installaties', { method: 'POST', body });
  for (const name of names) await send(`/${name}`);
  [requests, longestMs] = [0, 0];
  const clients = [
    ...Array.from({ length: 4 }, (_, i) =>
      until(() => send(i === 0 ? `/${names[7]}?perPage=10` : `/${any()}?perPage=10`)),
    ),
    until(() => send('/installaties', { method: 'POST', body })),
  ];
  const stop = async () => {
    isOver = true;
    await Promise.all(clients);
    return { requests, failed, longestMs };
  };
  return { stop };
}

function definitionOf(name: string): object {
  const field = (column: string, type: string) => ({ column, type, description: `The ${column}.` });
  return {
    name,
    record: `${name}row`,
    description: 'A table of the soak.',
    view: `records.${name}`,
    detail: true,
    order: ['created_at', 'id'],
    filters: {},
    fields: {
      id: field('id', 'uuid'),
      naam: { ...field('naam', 'text'), nullable: true },
      createdAt: field('created_at', 'timestamp'),
    },
  };
}
