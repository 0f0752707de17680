import { createWriteStream, existsSync, readdirSync } from 'node:fs';
import { chown, mkdir, open, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type pg from 'pg';
import { runAsAdmin } from '../../src/postgres/admin.js';
import { type Account, chooseServerAccount, findBinaries } from './binaries.js';
import {
  checkMajor,
  chooseTemporaryName,
  lockFolder,
  makeTemporaryFolder,
  prepareKeptFolder,
  removeHalfMade,
} from './cluster-folder.js';
import { type ClusterParts, initialize, PgNode, type ServerSettings, type StopMode } from './node.js';
import { passwordOf, readSuperuserPassword } from './passwords.js';
import { startReaper } from './processes.js';
import { until } from './wait.js';

export interface ClusterOptions {
  /** Folder that is kept between runs: its servers are started again, missing ones are made. Default: a temporary folder. */
  dir?: string;
  /** Folder for the temporary folder; default that of the system for temporary files. */
  temporaryIn?: string;
  replicas: number;
  /** Settings of every server, in addition to sql/apps/first/postgresql.conf. */
  settings?: ServerSettings;
  /** More settings of replicas only. */
  replicaSettings?: ServerSettings;
  /** Folder with initdb and postgres; default PG_BIN, else the binaries from npm. */
  pgBin?: string;
}

const streamingMsMax = 60_000;
const catchUpMsMax = 600_000;
/** Time in which a kept replica must stream; otherwise its WAL is gone, or it was promoted, and it is made again. */
const reviveMsMax = 10_000;

/** Starts a primary and its streaming replicas; resolves when all replicas stream. Whatever fails, nothing is left. */
export async function startCluster(options: ClusterOptions): Promise<Cluster> {
  const account = chooseServerAccount(options.dir);
  const binaries = await findBinaries(account, options.pgBin);
  const dir = options.dir ? prepareKeptFolder(options.dir, account) : chooseTemporaryName(options.temporaryIn);
  const reaper = startReaper();
  if (!options.dir) reaper.tell({ temporary: dir });
  let cluster: Cluster;
  try {
    if (!options.dir) makeTemporaryFolder(dir, account);
    await lockFolder(dir, reaper.pid);
    cluster = new Cluster({ dir, password: readSuperuserPassword(dir, account), binaries, reaper }, options);
  } catch (fault) {
    await reaper.end(); // the folder is another's: nothing in it is ours to stop
    throw fault;
  }
  try {
    await cluster.start(options.replicas);
    return cluster;
  } catch (fault) {
    await cluster.stop().catch(() => undefined); // the first fault tells more
    throw fault;
  }
}

/** A primary with its streaming replicas, all on 127.0.0.1. */
export class Cluster {
  /** Real path of the folder with all data directories and logs. */
  readonly dir: string;
  readonly primary: PgNode;
  readonly replicas: PgNode[] = [];
  readonly #parts: ClusterParts;
  readonly #options: ClusterOptions;
  #stopped: Promise<void> | undefined;

  constructor(parts: ClusterParts, options: ClusterOptions) {
    this.dir = parts.dir;
    this.#parts = parts;
    this.#options = options;
    this.primary = new PgNode('primary', parts);
  }

  /** Is called by startCluster. */
  async start(replicas: number): Promise<void> {
    removeHalfMade(this.dir);
    if (existsSync(this.primary.dir)) checkMajor(this.primary.dir, this.#parts.binaries.major);
    else await initialize(this.primary.dir, this.#parts.binaries, this.#parts.reaper);
    await this.primary.configure(this.#options.settings ?? {});
    await this.primary.start();
    for (const name of this.#listSurplus(replicas)) await rm(join(this.dir, name), { recursive: true, force: true });
    while (this.replicas.length < replicas) await this.addReplica();
  }

  /** Adds a replica: one kept from an earlier run if it still can follow, else a new copy. Resolves when it streams. */
  async addReplica(): Promise<PgNode> {
    const node = new PgNode(`replica${this.replicas.length + 1}`, this.#parts);
    this.replicas.push(node); // from here on stop() stops it
    if (!(await this.#revive(node))) await this.#copyPrimary(node);
    return node;
  }

  /** Gives login roles the passwords that PgNode.url puts into their URLs. */
  async setPasswords(roles: readonly string[]): Promise<void> {
    for (const role of roles)
      await this.primary.query(`alter role ${role} password '${passwordOf(role, this.#parts.password)}'`);
  }

  /** Resolves when these replicas, else all that run, have replayed the WAL that the primary has flushed by now. */
  async caughtUp(replicas: readonly PgNode[] = this.replicas.filter(({ running }) => running)): Promise<void> {
    const [position] = await this.primary.query<{ lsn: string }>('select pg_current_wal_flush_lsn()::text as lsn');
    const text = 'select 1 where pg_last_wal_replay_lsn() >= $1::pg_lsn';
    for (const replica of replicas) {
      if (await until(async () => (await replica.query(text, [position?.lsn])).length > 0, catchUpMsMax)) continue;
      throw new Error(`${replica.name} does not catch up with the primary; see ${replica.log}.`);
    }
  }

  /** Replaces the data of the replica at `index` (from 0) by a new copy of the primary, on the same port. */
  async rebuildReplica(index: number): Promise<void> {
    const node = this.replicas[index];
    if (!node) throw new Error(`There is no replica ${index}, only ${this.replicas.length} of them.`);
    await this.#copyPrimary(node);
  }

  /** Stops every server and removes a temporary folder. May be called again. Data that will be removed need no checkpoint: immediate. */
  stop(mode: StopMode = this.#options.dir ? 'fast' : 'immediate'): Promise<void> {
    this.#stopped ??= this.#stop(mode);
    return this.#stopped;
  }

  async #stop(mode: StopMode): Promise<void> {
    // All at once: the primary does not wait for a replica then.
    const stops = await Promise.allSettled([this.primary, ...this.replicas].map((node) => node.stop(mode)));
    await this.#parts.reaper.end();
    if (!this.#options.dir) await rm(this.dir, { recursive: true, force: true, maxRetries: 5 });
    else await rm(join(this.dir, 'lock'), { force: true });
    for (const stop of stops) if (stop.status === 'rejected') throw stop.reason;
  }

  async #revive(node: PgNode): Promise<boolean> {
    if (!existsSync(join(node.dir, 'standby.signal'))) return false;
    await this.#configureAsStandby(node);
    try {
      await node.start();
      return await this.#waitForStream(node, reviveMsMax);
    } catch {
      return false;
    }
  }

  async #copyPrimary(node: PgNode): Promise<void> {
    if (node.running) await node.kill9();
    const { account } = this.#parts.binaries;
    const making = `${node.dir}.making`;
    for (const dir of [node.dir, making]) await rm(dir, { recursive: true, force: true, maxRetries: 5 });
    await runAsAdmin(this.primary.url(), async (client) => {
      await copyAsStandby(client, this.primary.dir, making, node.name, account);
      await rename(making, node.dir); // a data directory under its own name is a whole one
      await this.#configureAsStandby(node);
      await node.start();
      if (await this.#waitForStream(node, streamingMsMax)) return;
      throw new Error(`${node.name} does not stream within ${streamingMsMax / 1000} s; see ${node.log}`);
    });
  }

  #configureAsStandby(node: PgNode): Promise<void> {
    const server = `host=127.0.0.1 port=${this.primary.port} sslmode=disable gssencmode=disable`;
    const source = `${server} user=postgres password=${this.#parts.password}`;
    const { settings, replicaSettings } = this.#options;
    const own = { primary_conninfo: `${source} application_name=${node.name}`, wal_retrieve_retry_interval: '500ms' };
    return node.configure({ ...settings, ...own, ...replicaSettings });
  }

  #waitForStream(node: PgNode, msMax: number): Promise<boolean> {
    const text = `select 1 from pg_stat_replication where application_name = $1 and state = 'streaming'`;
    return until(async () => (await this.primary.query(text, [node.name])).length > 0, msMax, 20);
  }

  #listSurplus(replicas: number): string[] {
    const names = readdirSync(this.dir).filter((name) => /^replica\d+$/.test(name));
    return names.filter((name) => Number(name.slice('replica'.length)) > replicas);
  }
}

/** Folders that a copy must have, but empty (the list of pg_basebackup). */
const emptied = new Set(
  'pg_wal pg_replslot pg_dynshmem pg_notify pg_serial pg_snapshots pg_stat_tmp pg_subtrans'.split(' '),
);
const skipped = /^(postmaster\.(pid|opts)|backup_label.*|tablespace_map.*|pg_internal\.init.*|pgsql_tmp.*|.*\.signal)$/;
/** Copied after all else, as pg_basebackup does: a copy is consistent no earlier than its control file says. */
const controlFile = join('global', 'pg_control');

/**
 * Copies a running server's data directory into a new folder, ready to start as its standby: the low-level backup of the
 * PostgreSQL documentation § 25.3.4. The client must stay connected until the standby streams: its temporary
 * replication slot (named after the standby) keeps the WAL that the copy lacks.
 */
export async function copyAsStandby(client: pg.Client, from: string, to: string, name: string, account?: Account) {
  await client.query('select pg_create_physical_replication_slot($1, true, true)', [`copy_for_${name}`]);
  await client.query('select pg_backup_start($1, true)', [name]);
  await copyFolder(from, to, '', account);
  await copyOne(join(from, controlFile), join(to, controlFile), account);
  const stopped = await client.query<{ labelfile: string }>('select labelfile from pg_backup_stop(false)');
  await write(join(to, 'backup_label'), stopped.rows[0]?.labelfile ?? '', account);
  await write(join(to, 'standby.signal'), '', account);
}

async function copyFolder(from: string, to: string, path: string, account: Account | undefined): Promise<void> {
  const folder = join(to, path);
  await mkdir(folder, { mode: 0o700 });
  if (account) await chown(folder, account.uid, account.gid);
  if (emptied.has(path)) return;
  const entries = (await readdir(join(from, path), { withFileTypes: true })).filter(({ name }) => !skipped.test(name));
  const files = entries.filter((entry) => entry.isFile()).map(({ name }) => join(path, name));
  // In parallel within one folder (some 300 files); Node's thread pool bounds how many really are.
  await Promise.all(
    files.filter((file) => file !== controlFile).map((file) => copyOne(join(from, file), join(to, file), account)),
  );
  for (const entry of entries) if (entry.isDirectory()) await copyFolder(from, to, join(path, entry.name), account);
}

/**
 * By streams: fs.copyFile repeats sendfile for ever when the server makes the file shorter meanwhile (VACUUM does). The source is opened
 * first: a copy of one that is gone would stay behind empty, and root's.
 */
async function copyOne(from: string, to: string, account: Account | undefined): Promise<void> {
  try {
    const source = await open(from);
    await pipeline(source.createReadStream(), createWriteStream(to, { mode: 0o600 }));
    if (account) await chown(to, account.uid, account.gid);
  } catch (fault) {
    // Dropped by the server meanwhile; replay drops it in the copy as well.
    if ((fault as NodeJS.ErrnoException).code !== 'ENOENT') throw fault;
  }
}

async function write(file: string, text: string, account: Account | undefined): Promise<void> {
  await writeFile(file, text, { mode: 0o600 });
  if (account) await chown(file, account.uid, account.gid);
}
