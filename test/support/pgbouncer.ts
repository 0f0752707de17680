import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { type Account, chooseServerAccount, getSpawnAccount, giveTo } from '../../demo/cluster/binaries.js';
import { freePort } from '../../demo/cluster/ports.js';
import { until } from './patience.js';

export const pgbouncerBinary: string | null =
  ['/usr/sbin/pgbouncer', 'pgbouncer'].find((name) => spawnSync(name, ['--version']).status === 0) ?? null;

interface PooledDatabase {
  readonly url: string;
  readonly mode: 'transaction' | 'session';
  readonly more?: string;
}

export interface Pgbouncer {
  readonly process: ChildProcess;
  url(name: string, host?: string): string;
  setMode(mode: PooledDatabase['mode']): void;
  stop(): Promise<void>;
}

/** Starts a real PgBouncer; `setMode` changes the pool mode of the databases whose name begins with `changing`. */
export async function startPgbouncer(databases: Readonly<Record<string, PooledDatabase>>): Promise<Pgbouncer> {
  const account = chooseServerAccount();
  const dir = mkdtempSync(join(tmpdir(), 'pgbouncer-'));
  giveTo(dir, account);
  const port = await freePort();
  const write = (name: string, lines: readonly string[]): string => {
    const file = join(dir, name);
    writeFileSync(file, `${lines.join('\n')}\n`, { mode: 0o600 });
    giveTo(file, account);
    return file;
  };
  const servers = Object.entries(databases).map(([name, { url, mode, more = '' }]) => ({
    name,
    mode,
    more,
    url: new URL(url),
  }));
  const users = new Map(servers.map(({ url }) => [url.username, url.password]));
  const lines = [
    '[databases]',
    ...servers.map(
      ({ name, mode, more, url }) =>
        `${name} = host=${url.hostname} port=${url.port} dbname=${url.pathname.slice(1)} pool_mode=${mode} ${more}`,
    ),
    '[pgbouncer]',
    'listen_addr = *',
    `listen_port = ${port}`,
    'unix_socket_dir =',
    'auth_type = plain',
    `auth_file = ${write(
      'users',
      [...users].map(([name, password]) => `"${name}" "${password}"`),
    )}`,
    'default_pool_size = 8',
    ...certificate(dir, account),
  ];
  const config = write('pgbouncer.ini', lines);
  const child = spawn(pgbouncerBinary as string, [config], { ...getSpawnAccount(account), stdio: 'ignore', cwd: '/' });
  const url = (name: string, host = '127.0.0.1'): string => {
    const pooled = new URL((databases[name] as PooledDatabase).url);
    return Object.assign(pooled, { host: `${host}:${port}`, pathname: `/${name}` }).href;
  };
  const isUp = await until(() => answers(url(servers[0]?.name as string)), 10_000, 50);
  const stop = (): Promise<void> => stopped(child, dir);
  if (!isUp) {
    await stop();
    throw new Error('PgBouncer did not answer within 10 s');
  }
  const setMode = (mode: string): void => {
    write(
      'pgbouncer.ini',
      lines.map((line) => line.replace(/^(changing.* pool_mode=)\w+/, `$1${mode}`)),
    );
    child.kill('SIGHUP');
  };
  return { process: child, url, setMode, stop };
}

function certificate(dir: string, account: Account | undefined): string[] {
  const [key, cert] = [join(dir, 'key.pem'), join(dir, 'cert.pem')];
  const made = spawnSync('openssl', [
    ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-subj', '/CN=pooler'],
    ...['-keyout', key, '-out', cert],
  ]);
  if (made.status !== 0) return [];
  for (const file of [key, cert]) giveTo(file, account);
  return ['client_tls_sslmode = allow', `client_tls_key_file = ${key}`, `client_tls_cert_file = ${cert}`];
}

async function answers(url: string): Promise<boolean> {
  const client = new pg.Client(url);
  client.on('error', () => undefined);
  try {
    await client.connect();
    await client.query('select 1');
    return true;
  } catch {
    return false;
  } finally {
    await client.end().catch(() => undefined);
  }
}

async function stopped(child: ChildProcess, dir: string): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) {
    child.kill('SIGKILL');
    await once(child, 'exit');
  }
  rmSync(dir, { recursive: true, force: true });
}
