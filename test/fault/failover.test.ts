import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import pg from 'pg';
import type { PgNode } from '../../src/demo/cluster/node.js';
import { until } from '../../src/demo/cluster/wait.js';
import { projectRoot } from '../../src/paths.js';
import type { Settings } from '../../src/settings.js';
import { commandLine } from '../support/command-line.js';
import { type FaultCluster, faultCluster } from '../support/fault-cluster.js';
import { type Load, startLoad } from '../support/load.js';
import { type ServeProcess, serveProcess } from '../support/serve-process.js';
import { templateName } from '../support/template.js';
import { allScopes } from '../support/workspace.js';

// Changes of servers and logins under a gateway that is not restarted: real passwords, real logins, a real promotion.

let setUp: FaultCluster;
let token: string;
let customerId: string;
let folder: string;
const passwords = { gateway_reader: '', gateway_writer: '' };

test.before(async () => {
  setUp = await faultCluster();
  token = await setUp.token({ scopes: allScopes });
  const [row] = await setUp.sql<{ id: string }>('select id from app.klanten where workspace_id = $1 limit 1', [
    setUp.workspaces[0]?.id,
  ]);
  customerId = row?.id as string;
  folder = mkdtempSync(join(tmpdir(), 'logins-'));
});
test.after.always(async () => {
  await setUp?.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** The connection URLs of these roles with these passwords, as the settings name them. */
function urls(reader: string, writer: string, readerPassword: string, writerPassword: string): Partial<Settings> {
  const { primary, replicas } = setUp.cluster;
  const url = (role: string, password: string, port: number): string =>
    `postgres://${role}:${password}@127.0.0.1:${port}/${templateName}`;
  return {
    replicaUrls: replicas.map(({ port }) => url(reader, readerPassword, port)).join(' '),
    primaryUrl: url(writer, writerPassword, primary.port),
  };
}

const currentPasswords = (): [string, string] => [passwords.gateway_reader, passwords.gateway_writer];

const file = (setting: string): string => join(folder, setting);

/** Writes the files that REPLICA_URLS_FILE and PRIMARY_URL_FILE name. */
function writeFiles(settings: Partial<Settings>): void {
  for (const [name, value] of Object.entries(settings)) writeFileSync(file(name), String(value));
}

/** `serve` with its connection URLs in files, and clients that read and write without a pause. */
async function serveUnderLoad(t: ExecutionContext): Promise<{ serving: ServeProcess; load: Load }> {
  const { replicaUrls: _, primaryUrl: __, ...settings } = setUp.settings();
  const files = { replicaUrlsFile: file('replicaUrls'), primaryUrlFile: file('primaryUrl') } as Partial<Settings>;
  const serving = await serveProcess({ ...settings, ...files });
  t.teardown(() => serving.child.kill('SIGKILL'));
  const load = startLoad(serving.url, { token, customerId, readers: 4, writers: 2 });
  t.teardown(() => load.stop());
  t.true(await load.passed(20));
  return { serving, load };
}

/** Ends the gateway's sessions on one server after the other, so that each must log in again. */
async function endSessions(load: Load): Promise<void> {
  const { primary, replicas } = setUp.cluster;
  for (const node of [primary, ...replicas]) {
    await node.query(
      `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'workspace-data-gateway'`,
    );
    await load.passed(12);
  }
}

function changePasswords(round: number): Partial<Settings> {
  for (const role of ['gateway_reader', 'gateway_writer'] as const) passwords[role] = `${role}_${round}`;
  return urls('gateway_reader', 'gateway_writer', ...currentPasswords());
}

test.serial('passwords are rotated again and again under load, and no read and no write fails', async (t) => {
  const { replicaUrls, primaryUrl } = setUp.settings();
  writeFiles({ replicaUrls, primaryUrl });
  const { serving, load } = await serveUnderLoad(t);
  for (let round = 1; round <= 2; round++) {
    writeFiles(changePasswords(round));
    for (const [role, password] of Object.entries(passwords))
      await setUp.sql(`alter role ${role} password '${password}'`);
    await setUp.caughtUp();
    await endSessions(load);
  }
  const { outcomes, reads, writes } = await load.stop();
  t.log(`${reads} reads, ${writes} writes`);
  t.deepEqual(outcomes, []);
  t.true(reads > 30 && writes > 10, `${reads} reads, ${writes} writes`);
  t.regex(serving.log(), /"server":"replica2","msg":"login_renewed"/);
  t.regex(serving.log(), /"server":"primary","msg":"login_renewed"/);
});

test.serial('a replica that refuses logins costs no read, and is used again when it accepts them', async (t) => {
  const gateway = await setUp.gateway(urls('gateway_reader', 'gateway_writer', ...currentPasswords()));
  const load = startLoad(gateway.gateway.url, { token, customerId, readers: 4, writers: 0 });
  const replica = setUp.cluster.replicas[0] as PgNode;
  const hba = join(replica.dir, 'pg_hba.conf');
  const before = readFileSync(hba, 'utf8');
  writeFileSync(hba, `host all gateway_reader all reject\n${before}`);
  await replica.query('select pg_reload_conf()');
  const state = () => gateway.gateway.replicas[0]?.state;
  const isOut = async (): Promise<boolean> => {
    await endSessions(load);
    return state()?.reason === 'PostgreSQL error 28000';
  };
  t.true(await until(isOut, 20_000, 50));
  writeFileSync(hba, before);
  await replica.query('select pg_reload_conf()');
  t.true(await until(() => state()?.healthy === true, 20_000, 50));
  t.deepEqual((await load.stop()).outcomes, []);
  await gateway.stop();
});

test.serial(
  'logins that are members of the roles take over under load, and the roles themselves lose theirs',
  async (t) => {
    await makeLogin('reader_b', 'gateway_reader');
    await makeLogin('writer_b', 'gateway_writer');
    const { load } = await serveUnderLoad(t);
    const members = urls('reader_b', 'writer_b', 'secret', 'secret');
    writeFiles(members);
    await setUp.sql('alter role gateway_reader nologin; alter role gateway_writer nologin');
    await setUp.caughtUp();
    await endSessions(load);
    const { outcomes } = await load.stop();
    t.deepEqual(outcomes, []);
    const users = await setUp.cluster.replicas[0]?.query<{ usename: string }>(
      `select distinct usename from pg_stat_activity where application_name = 'workspace-data-gateway'`,
    );
    t.deepEqual(users, [{ usename: 'reader_b' }]);

    const check = () => commandLine(['check'], { ...members, dataKeys: setUp.settings().dataKeys });
    const accepted = await check();
    t.is(accepted.code, 0);
    t.notRegex(accepted.stdout, /WARNING {2}role settings/);
    await setUp.sql(
      'alter role reader_b noinherit; grant pg_monitor to reader_b; grant gateway_writer to writer_b with admin option; alter role writer_b reset statement_timeout',
    );
    if (await isVersion(16)) await setUp.sql('grant gateway_reader to reader_b with inherit false');
    await setUp.caughtUp();
    const { stdout, code } = await check();
    t.is(code, 1);
    t.regex(
      stdout,
      /role reader_b: it is a member of pg_monitor.*; it is a member of gateway_reader and does not inherit from it/,
    );
    t.regex(stdout, /role writer_b: it is a member of gateway_writer and can grant it/);
    t.regex(stdout, /role settings writer_b: It lacks statement_timeout=10s, which gateway_writer has/);
    await setUp.sql('alter role gateway_reader login; alter role gateway_writer login; drop role reader_b, writer_b');
  },
);

/** Runs deploy/login.sql as its comment says, and gives the login a password. */
async function makeLogin(login: string, role: string): Promise<void> {
  const client = new pg.Client({
    connectionString: setUp.cluster.primary.url(templateName),
    options: `-c gateway.login=${login} -c gateway.role=${role}`,
  });
  await client.connect();
  await client.query(readFileSync(join(projectRoot, 'deploy/login.sql'), 'utf8'));
  await client.query(`alter role ${login} password 'secret'`);
  await client.end();
}

async function isVersion(major: number): Promise<boolean> {
  const [row] = await setUp.sql<{ version: string }>(`select current_setting('server_version_num') as version`);
  return Number(row?.version) >= major * 10_000;
}
