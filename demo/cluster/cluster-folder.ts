import { randomBytes } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, realpathSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Account, giveTo } from './binaries.js';
import { getProcessIdentity, readLines } from './processes.js';
import { until } from './wait.js';

const clusterFiles = /^(primary|replica\d+)(\.making|\.log)?$|^(lock|password)$/;

/**
 * A name for a temporary folder, as a real path that is not there yet: it is made by makeTemporaryFolder only after the
 * reaper knows of it, or a kill in between would leave the folder behind.
 */
export function chooseTemporaryName(parent = tmpdir()): string {
  return join(realpathSync(parent), `workspace-data-gateway-${randomBytes(8).toString('hex')}`);
}

export function makeTemporaryFolder(dir: string, account: Account | undefined): void {
  mkdirSync(dir, { mode: 0o700 });
  giveTo(dir, account);
}

/** Makes a kept folder, or checks that it is a cluster's or empty; gives its real path. */
export function prepareKeptFolder(path: string, account: Account | undefined): string {
  if (mkdirSync(path, { recursive: true })) giveTo(path, account);
  const dir = realpathSync(path);
  const names = readdirSync(dir);
  const foreign = names.includes('primary') ? undefined : names.find((name) => !clusterFiles.test(name));
  if (foreign) throw new Error(`${dir} holds something else (${foreign}): name an empty or new folder.`);
  if (names.length === 0) giveTo(dir, account);
  const owner = statSync(dir).uid;
  const user = account?.uid ?? process.getuid?.();
  if (owner !== user) throw new Error(`${dir} belongs to user ${owner}, but PostgreSQL runs as ${user}: name another.`);
  return dir;
}

/** Throws when the data of a kept folder was made by another major version, which cannot be started. */
export function checkMajor(dataDir: string, major: number): void {
  const made = readFileSync(join(dataDir, 'PG_VERSION'), 'utf8').trim();
  if (Number(made) === major) return;
  const advice = 'name another folder, or set PG_BIN to the bin folder of that version';
  throw new Error(`${dataDir} was made by PostgreSQL ${made}, and this is ${major}: ${advice}.`);
}

/**
 * Makes the folder ours until the process `holder` ends; that is the reaper, since it is the last one to work there.
 * Waits 12 s for a former holder: its reaper may still be stopping servers.
 */
export async function lockFolder(dir: string, holder: number): Promise<void> {
  const file = join(dir, 'lock');
  const isTaken = await until(
    () => {
      const former = readLines(file)[0];
      if (former && getProcessIdentity(Number.parseInt(former, 10)) === former) return false;
      if (former !== undefined) rmSync(file, { force: true });
      try {
        writeFileSync(file, `${getProcessIdentity(holder)}\n`, { flag: 'wx' });
        return true;
      } catch (fault) {
        if ((fault as NodeJS.ErrnoException).code === 'EEXIST') return false; // another one was quicker
        throw fault;
      }
    },
    12_000,
    50,
  );
  if (!isTaken) throw new Error(`${dir} is in use by another demo (process ${readLines(file)[0]}).`);
}

/** Removes data directories that a crash left half-made. */
export function removeHalfMade(dir: string): void {
  for (const name of readdirSync(dir)) {
    if (name.endsWith('.making') && clusterFiles.test(name)) rmSync(join(dir, name), { recursive: true, force: true });
  }
}
