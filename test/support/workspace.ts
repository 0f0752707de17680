import { randomUUID } from 'node:crypto';
import { PassThrough } from 'node:stream';
import { isDeepStrictEqual } from 'node:util';
import anyTest, { type ExecutionContext, type TestFn } from 'ava';
import pg from 'pg';
import { urlAs } from '../../demo/cluster/passwords.js';
import { type AppName, apps } from '../../demo/seed/apps.js';
import type { Gateway } from '../../src/serve/gateway.js';
import { startGateway } from '../../src/serve/gateway.js';
import { hashToken, makeToken } from '../../src/serve/http/token-format.js';
import { loadSettings, type Settings } from '../../src/settings.js';
import { appName } from './app.js';
import { type ApiClient, apiClient } from './client.js';
import { contractValidator } from './contract.js';
import { limitMs, until } from './patience.js';
import { shared } from './shared.js';
import { cloned, type SharedTemplate } from './template.js';
import { wallKey } from './walls.js';

export { shared };

export const allScopes = [
  'read:klanten',
  'read:installaties',
  'read:werkbonnen',
  'read:logboeken',
  'write:installaties',
];

/**
 * The client's validator and the gateway share this process: while a schema is compiled or a large page is validated,
 * the gateway's clocks run on, and housekeeping would add statements to those that a test counts. Tests of these set them themselves.
 */
const unhurried = {
  detailWaitMs: 30_000,
  probeDeadlineMs: 10_000,
  connectTimeoutMs: 10_000,
  resumeMs: 10_000,
  statementTimeoutMs: 60_000,
  writeTimeoutMs: 30_000,
  writeWaitMs: 20_000,
  freshnessWaitMs: 10_000,
  upkeepIntervalMs: 3_600_000,
  fitnessIntervalMs: 3_600_000, // tests change views by hand
};

/** This test file has the database for itself, on the shared primary and replica. */
export interface TestDatabase {
  readonly name: string;
  readonly primary: pg.Client;
  readonly replica: pg.Client;
  readonly workspaces: SharedTemplate['workspaces'];
  readonly settings: Settings;
  token(options?: { workspace?: number; scopes?: readonly string[]; expiresAt?: Date | null }): Promise<string>;
  /** Resolves when the replica has replayed all the primary has written. */
  caughtUp(): Promise<void>;
  /** Starts a gateway in this process, which stops after the test file, with its log and a client with an all-scopes token. */
  gateway(overrides?: Partial<Settings>): Promise<RunningGateway>;
}

export interface RunningGateway {
  readonly gateway: Gateway;
  readonly client: ApiClient;
  readonly token: string;
  log(): string;
}

export interface TestContext extends RunningGateway {
  readonly database: TestDatabase;
}

const cleanUps: (() => Promise<unknown>)[] = [];
const databases = new Map<AppName, Promise<TestDatabase>>();
/** Most gateways of a file have the same document, and compiling its schemas takes half a second. */
const validators = new Map<string, ReturnType<typeof contractValidator>>();
let calls = 0;

/**
 * Wraps AVA's `test` for a file with a database and a gateway of its own: `t.context` holds both. The database is that of the app under
 * test, or of `app`. A file that needs gateways with other settings calls this again: they share the database. Everything is taken
 * down after the file's tests.
 */
export function gatewayTest(overrides: Partial<Settings> = {}, app: AppName = appName): TestFn<TestContext> {
  const test = anyTest as TestFn<TestContext>;
  const isFirst = calls++ === 0;
  let own: TestContext | undefined;
  test.serial.before(async (t) => {
    const found = databases.get(app) ?? cloneTemplate(app);
    databases.set(app, found);
    const database = await found;
    own = { database, ...(await database.gateway(overrides)) };
    if (isFirst) Object.assign(t.context, own);
  });
  if (isFirst)
    test.after.always(async () => {
      for (const cleanUp of cleanUps.reverse()) await cleanUp();
    });
  return inContext(test, () => own);
}

/** Gives the tests of this `test` its context. Hooks get the context of the first `gatewayTest` in the file. */
function inContext<T extends object>(test: T, context: () => object | undefined): T {
  return new Proxy(test, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name);
      const isTest = typeof value === 'function' && (name === 'serial' || name === 'skip' || name === 'failing');
      return isTest ? inContext(value, context) : value;
    },
    apply: (target, self, [title, implementation, ...rest]) =>
      Reflect.apply(target as unknown as typeof anyTest, self, [
        title,
        (t: ExecutionContext<object>, ...values: unknown[]) => {
          Object.assign(t.context, context());
          return implementation(comparingQuickly(t), ...values);
        },
        ...rest,
      ]),
  });
}

/** AVA describes both values before it compares them, a whole list for a second: equal ones are told by Node itself. */
function comparingQuickly<T>(t: ExecutionContext<T>): ExecutionContext<T> {
  const { deepEqual } = t;
  const quick = (found: unknown, expected: unknown, message?: string): boolean =>
    isDeepStrictEqual(found, expected) ? t.pass() : deepEqual(found, expected, message);
  return Object.assign(t, { deepEqual: Object.assign(quick, { skip: deepEqual.skip }) });
}

async function cloneTemplate(app: AppName): Promise<TestDatabase> {
  const name = `test_${randomUUID().replaceAll('-', '').slice(0, 12)}`;
  const [replicaServer] = shared.replicas as [string];
  await onServer(`create database ${name} template ${cloned[app]} strategy file_copy`); // a third of the time without fsync
  await onServer(`revoke temporary on database ${name} from public`); // CREATE DATABASE copies no privileges of a database
  cleanUps.push(() => onServer(`drop database ${name} with (force)`));
  const primary = await connected(urlAs(shared.primary, 'postgres', name));
  const anywhere = await connected(replicaServer);
  const caughtUp = (): Promise<void> => replayed(primary, anywhere);
  await caughtUp();
  const replica = await connected(urlAs(replicaServer, 'postgres', name));
  const settings = loadSettings(
    {},
    {
      host: '127.0.0.1',
      port: 0,
      opsPort: 0,
      replicaUrls: urlAs(replicaServer, 'gateway_reader', name),
      primaryUrls: urlAs(shared.primary, 'gateway_writer', name),
      adminUrl: urlAs(shared.primary, 'postgres', name),
      dataKeys: JSON.stringify(shared.keys),
      wallKey,
      resourcesDir: apps[app].resourcesDir,
      rateLimitPerMinute: 1_000_000,
      authFailuresPerMinute: 1_000_000,
      publicRequestsPerMinute: 1_000_000,
      logLevel: 'trace',
    },
  );
  const { workspaces } = shared.apps[app];
  const token: TestDatabase['token'] = async ({ workspace = 0, scopes = allScopes, expiresAt = null } = {}) => {
    const text = makeToken();
    const { id, ownerId } = workspaces[workspace] as { id: string; ownerId: string };
    await primary.query(
      'insert into gateway.api_tokens (id, workspace_id, created_by, name, token_hash, scopes, expires_at) values ($1, $2, $3, $4, $5, $6, $7)',
      [randomUUID(), id, ownerId, 'test', hashToken(text), scopes, expiresAt],
    );
    await caughtUp();
    return text;
  };
  const gateway: TestDatabase['gateway'] = async (overrides = {}) => {
    const chunks: string[] = [];
    const destination = new PassThrough();
    destination.on('data', (chunk: Buffer) => chunks.push(chunk.toString()));
    const started = await startGateway({ ...settings, ...unhurried, ...overrides }, destination);
    let stopping: Promise<void> | undefined; // a test may stop it before the end of the file
    const running = { ...started, stop: () => (stopping ??= started.stop()) };
    cleanUps.push(running.stop);
    const text = await token();
    const document = await (await fetch(`${running.url}/api/v1/openapi.json`)).text();
    const validate = validators.get(document) ?? contractValidator(JSON.parse(document));
    validators.set(document, validate);
    const client = apiClient(`${running.url}/api/v1`, { token: text, validate });
    return { gateway: running, client, token: text, log: () => chunks.join('') };
  };
  return { name, primary, replica, workspaces, settings, caughtUp, token, gateway };
}

async function connected(url: string): Promise<pg.Client> {
  const client = new pg.Client(url);
  client.on('error', () => {});
  await client.connect();
  cleanUps.push(() => client.end());
  return oneByOne(client);
}

/** The tests of a file run at the same time and share this client; pg wants a query to end before the next is given. */
function oneByOne(client: pg.Client): pg.Client {
  const query = client.query.bind(client) as (...parameters: unknown[]) => Promise<unknown>;
  let before: Promise<unknown> = Promise.resolve();
  client.query = ((...parameters: unknown[]) => {
    const mine = before.then(() => query(...parameters));
    before = mine.catch(() => {});
    return mine;
  }) as typeof client.query;
  return client;
}

async function onServer(sql: string): Promise<void> {
  const client = new pg.Client(shared.primary);
  await client.connect();
  try {
    await client.query(sql);
  } finally {
    await client.end();
  }
}

async function replayed(primary: pg.Client, replica: pg.Client): Promise<void> {
  const { rows } = await primary.query<{ lsn: string }>('select pg_current_wal_flush_lsn()::text as lsn');
  for (let waited = 0; waited < limitMs(30_000); waited += 10) {
    const answer = await replica.query<{ there: boolean }>('select pg_last_wal_replay_lsn() >= $1::pg_lsn as there', [
      rows[0]?.lsn,
    ]);
    if (answer.rows[0]?.there) return;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  throw new Error('the replica did not catch up within 30 s');
}

/** Waits until the condition holds; fails the test with `what` after `timeoutMs`. */
export async function eventually(
  t: ExecutionContext,
  what: string,
  condition: () => boolean | Promise<boolean>,
  timeoutMs = 10_000,
): Promise<void> {
  if (!(await until(condition, timeoutMs, 25))) t.fail(`${what} did not happen within ${timeoutMs} ms`);
}
