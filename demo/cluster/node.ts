import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  closeSync,
  existsSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import pg from 'pg';
import { readProject } from '../../src/base/paths.js';
import { runAsAdmin } from '../../src/postgres/admin.js';
import { type Account, type Binaries, getSpawnAccount, giveTo, serverEnv } from './binaries.js';
import { getPasswordFile, passwordOf } from './passwords.js';
import { freePort } from './ports.js';
import { endAll, killAll, listProcesses, type Reaper, readLines, sendSignal } from './processes.js';
import { until } from './wait.js';

export type StopMode = 'smart' | 'fast' | 'immediate';

/** Recovery after a crash counts in it; seconds are usual. */
const startMsMax = 120_000;
const stopMsMax = 15_000;

/** The parts that the servers of a cluster share. */
export interface ClusterParts {
  /** Real path of the folder with all data directories and logs. */
  readonly dir: string;
  /** The superuser's password. */
  readonly password: string;
  readonly binaries: Binaries;
  readonly reaper: Reaper;
}

/** One PostgreSQL server on an existing data directory. */
export class PgNode {
  /** "primary", "replica1", …; a replica's application_name as well. */
  readonly name: string;
  /** Data directory, a real path. */
  readonly dir: string;
  /** Server log, next to the data directory. */
  readonly log: string;
  readonly #parts: ClusterParts;
  #settings: ServerSettings = {};
  #port = 0;
  #child: ChildProcess | undefined;
  #sessions: pg.Pool | undefined;

  constructor(name: string, parts: ClusterParts) {
    this.name = name;
    this.dir = join(parts.dir, name);
    this.log = join(parts.dir, `${name}.log`);
    this.#parts = parts;
  }

  /** TCP port on 127.0.0.1; 0 before the first start, then the same for good. */
  get port(): number {
    return this.#port;
  }

  /** Process id of the postmaster; 0 when it does not run. */
  get pid(): number {
    return (this.running && this.#child?.pid) || 0;
  }

  get running(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Connection URL, with password, of the superuser or of a role that Cluster.setPasswords was called for. */
  url(database = 'postgres', role = 'postgres'): string {
    return `postgres://${role}:${passwordOf(role, this.#parts.password)}@127.0.0.1:${this.#port}/${database}`;
  }

  /** Runs one statement as superuser, in a session that is kept for the next: a new one costs both sides 9 ms of processor time. */
  async query<Row extends pg.QueryResultRow>(text: string, values: unknown[] = []): Promise<Row[]> {
    this.#sessions ??= openKeptSessions(this.url());
    return (await this.#sessions.query<Row>(text, values)).rows;
  }

  /** Resolves when the server takes queries. Throws with the end of its log when it does not come up. */
  async start(): Promise<void> {
    if (this.running) return;
    // Backends of a killed server end by themselves, and the reaper of a former run may still be at work.
    if (!(await until(() => listProcesses(this.dir).length === 0, 10_000, 50))) {
      throw new Error(`${this.dir} is in use by process ${listProcesses(this.dir)[0]?.pid}: is a demo running there?`);
    }
    rmSync(join(this.dir, 'postmaster.pid'), { force: true }); // stale: its process id may belong to another program by now
    for (let attempt = 1; ; attempt++) {
      const port = this.#port || (await freePort());
      const fault = await this.#startOn(port);
      if (!fault) return;
      const raceLost = /could not bind|Address already in use|could not create any TCP/.test(fault);
      if (!raceLost || attempt === 5) throw new Error(`${this.name} (PostgreSQL) did not start: ${fault}`);
    }
  }

  /** Stops the server: fast ends its connections, smart waits for them, immediate forgoes the checkpoint. */
  async stop(mode: StopMode = 'fast'): Promise<void> {
    if (this.running) {
      this.thaw();
      sendSignal(this.pid, stopSignals[mode]);
      await until(() => !this.running, stopMsMax);
    }
    await endAll(this.dir, 5000);
    await until(() => !this.running, 5000);
    this.#parts.reaper.tell({ stopped: this.dir });
  }

  async restart(mode: StopMode = 'fast'): Promise<void> {
    await this.stop(mode);
    await this.start();
  }

  /** SIGKILL to postmaster and backends alike. start() brings it back by crash recovery, on the same port. */
  async kill9(): Promise<void> {
    await killAll(this.dir);
    await until(() => !this.running, 5000);
  }

  /** Freezes the server: connections stay open and new ones are accepted by the kernel, but nothing answers. */
  freeze(): void {
    // The postmaster first: it starts nothing new while its children are counted.
    sendSignal(this.pid, 'SIGSTOP');
    for (const { pid } of listProcesses(this.dir)) sendSignal(pid, 'SIGSTOP');
  }

  thaw(): void {
    for (const { pid } of listProcesses(this.dir)) sendSignal(pid, 'SIGCONT');
  }

  /**
   * Adds to the server's own settings (null: takes one away) and has them reloaded; resolves when new sessions see them.
   * Settings that need a restart wait for restart(). Throws on a value that PostgreSQL refuses.
   */
  async configure(settings: ServerSettings): Promise<void> {
    this.#settings = { ...this.#settings, ...settings };
    writeSettings(this.dir, this.#settings, this.#parts.binaries.account);
    if (!this.running) return;
    const moment = 'select pg_conf_load_time()::text at';
    const loaded = () =>
      runAsAdmin(this.url(), async (client) => (await client.query<{ at: string }>(moment)).rows[0]?.at);
    const before = await loaded();
    sendSignal(this.pid, 'SIGHUP');
    if (!(await until(async () => (await loaded()) !== before, 5000))) throw new Error(`${this.name} does not reload.`);
    const refused = await this.query<{ name: string; error: string }>(
      // The excluded text is PostgreSQL's for a value that waits for a restart.
      `select name, error from pg_file_settings where error <> 'setting could not be applied'`,
    );
    if (refused[0]) throw new Error(`${this.name} refuses setting ${refused[0].name}: ${refused[0].error}`);
  }

  /** Makes a replica a primary of its own, on a new timeline. Throws when that takes over 30 s. */
  async promote(): Promise<void> {
    const [row] = await this.query<{ promoted: boolean }>('select pg_promote(true, 30) promoted');
    if (!row?.promoted) throw new Error(`${this.name} was not promoted within 30 s: ${this.#readLogTail()}`);
  }

  /** Starts the server once; resolves to the fault as text when that failed. */
  async #startOn(port: number): Promise<string | undefined> {
    const { postgres, account } = this.#parts.binaries;
    const fixed = [`port=${port}`, 'listen_addresses=127.0.0.1', 'unix_socket_directories='];
    const args = ['-D', this.dir, ...fixed.flatMap((setting) => ['-c', setting])];
    this.#parts.reaper.tell({ started: this.dir });
    const log = openSync(this.log, 'a', 0o600);
    giveTo(this.log, account);
    const options = { ...getSpawnAccount(account), env: serverEnv, cwd: dirname(this.dir), detached: true };
    const child = spawn(postgres, args, { ...options, stdio: ['ignore', log, log] });
    closeSync(log);
    child.unref();
    child.on('error', () => undefined); // pid is undefined then
    this.#child = child.pid ? child : undefined;

    let status = '';
    const settled = await until(() => {
      // Lines 1 and 8 of postmaster.pid; "standby" there means a replica that is not consistent yet.
      const lines = readLines(join(this.dir, 'postmaster.pid'));
      status = Number(lines[0]) === child.pid ? (lines[7]?.trim() ?? '') : '';
      return status === 'ready' || !this.running;
    }, startMsMax);
    if (status === 'ready' && this.running) {
      this.#port = port;
      return undefined;
    }
    await endAll(this.dir, 5000);
    return `${settled ? 'it ended' : `no sign of life in ${startMsMax / 1000} s`}; its log ends in\n${this.#readLogTail()}`;
  }

  #readLogTail(): string {
    return readLines(this.log).slice(-12).join('\n').trim();
  }
}

/** Sessions of a superuser that end with their server, or ten seconds after their last statement, and keep no program running. */
export function openKeptSessions(url: string): pg.Pool {
  const pool = new pg.Pool({ connectionString: url, connectionTimeoutMillis: 10_000, allowExitOnIdle: true });
  return pool.on('error', () => undefined); // the next statement gets another session
}

/** postmaster's signals, PostgreSQL documentation § 18.5. */
const stopSignals: Record<StopMode, NodeJS.Signals> = { smart: 'SIGTERM', fast: 'SIGINT', immediate: 'SIGQUIT' };

const initMsMax = 60_000;

/** Makes a new, empty database cluster. It gets the name `dir` when it is complete, so a crash leaves no incomplete one there. */
export async function initialize(dir: string, binaries: Binaries, reaper: Reaper): Promise<void> {
  const making = `${dir}.making`;
  let output = '';
  // C.UTF-8 sorts alike on every machine; where the system does not know it, C does too.
  for (const locale of ['C.UTF-8', 'C']) {
    rmSync(making, { recursive: true, force: true });
    reaper.tell({ started: making });
    const run = await runInitdb(making, locale, binaries);
    reaper.tell({ stopped: making });
    output = run.output;
    if (run.ok) return renameSync(making, dir);
    if (!/invalid locale/.test(output)) break;
  }
  const accessDenied = binaries.account && /Permission denied/.test(output);
  const advice = accessDenied
    ? ` (PostgreSQL runs as ${binaries.account?.name}, which may have no way in: name another folder)`
    : '';
  throw new Error(`initdb failed for ${dir}${advice}: ${output.slice(-600).trim()}`);
}

interface InitdbResult {
  readonly ok: boolean;
  readonly output: string;
}

async function runInitdb(dir: string, locale: string, binaries: Binaries): Promise<InitdbResult> {
  const { initdb, account } = binaries;
  const login = ['-U', 'postgres', '-A', 'scram-sha-256', `--pwfile=${getPasswordFile(dirname(dir))}`];
  const args = ['-D', dir, ...login, '-E', 'UTF8', `--locale=${locale}`, '--no-sync'];
  const options = { ...getSpawnAccount(account), env: serverEnv, cwd: dirname(dir), detached: true };
  const child = spawn(initdb, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      output += chunk;
    });
  }
  const limit = setTimeout(() => {
    output += `no end in ${initMsMax / 1000} s`;
    void endAll(dir, 0);
  }, initMsMax);
  const [result] = await once(child, 'close').catch((fault: Error) => [fault.message]);
  clearTimeout(limit);
  return { ok: result === 0, output: typeof result === 'string' ? output + result : output };
}

/** PostgreSQL settings by name; null leaves a setting at the default of all servers. */
export type ServerSettings = Record<string, string | null>;

const fileName = 'embedded.conf';

/** Writes sql/apps/first/postgresql.conf and, overriding it, the settings to one file, which the server's own file includes last. */
function writeSettings(dir: string, settings: ServerSettings, account: Account | undefined): void {
  const file = join(dir, fileName);
  const common = readProject('sql/apps/first/postgresql.conf');
  const lines = Object.entries(settings).map(([name, value]) => (value === null ? '' : `${name} = ${quote(value)}\n`));
  writeFileSync(`${file}.new`, [common, ...lines].join(''), { mode: 0o600 });
  giveTo(`${file}.new`, account);
  renameSync(`${file}.new`, file); // a server that is just reading sees the old or the new file, never half a one

  const main = join(dir, 'postgresql.conf');
  const include = `include_if_exists = '${fileName}'`;
  if (existsSync(main) && !readFileSync(main, 'utf8').includes(include)) appendFileSync(main, `\n${include}\n`);
}

/** PostgreSQL reads backslash escapes in these strings too. */
const quote = (value: string) => `'${value.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`;
