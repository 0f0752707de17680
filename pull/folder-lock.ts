import { randomUUID } from 'node:crypto';
import { readdir, readFile, readlink, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { DestinationUnusable } from './destination.js';

const refreshMs = 10_000;
/** A lock that was not refreshed for so long was left behind by a process that was killed or is suspended. */
const expiryMs = 60_000;
/** After so long a text that is not whole was left behind, too. Its writer, if it was suspended, then finds that it lost the lock. */
const writingMsMax = 5000;
const writingPauseMs = 50;
const released = 'released';
const form = /^lock-(\d{6,12})$/;

interface Owner {
  readonly place: string;
  readonly host: string;
  readonly pid: number;
}

/** The right to change a folder. */
export interface FolderLock {
  /** Throws DestinationUnusable when another process has taken the lock, while this one was suspended. */
  check(): Promise<void>;
  release(): Promise<void>;
}

/**
 * Takes the lock of a folder, across the hosts that share it. The lock is the file with the highest number; the next number is free for
 * one process only, so two processes cannot both take over a lock that was left behind. Throws DestinationUnusable while another process has it.
 */
export async function lockFolder(folder: string): Promise<FolderLock> {
  const before = await newestLock(folder);
  if (before > 0) await refuseHeld(folder, before);
  const mine = before + 1;
  const path = pathOf(folder, mine);
  const owner = JSON.stringify({ place: await placeOfIds(), host: hostname(), pid: process.pid, run: randomUUID() });
  await writeFile(path, owner, { flag: 'wx' }).catch((error: NodeJS.ErrnoException) => {
    throw error.code === 'EEXIST' ? taken() : error;
  });
  const check = async (): Promise<void> => {
    if ((await newestLock(folder)) !== mine || (await textOf(path)) !== owner) throw taken();
  };
  await check();
  for (const number of await locks(folder)) if (number < mine) await rm(pathOf(folder, number), { force: true });
  // A failed refresh shows at the next check.
  const refresh = setInterval(() => void utimes(path, new Date(), new Date()).catch(() => undefined), refreshMs);
  refresh.unref();
  return {
    check,
    release: async () => {
      clearInterval(refresh);
      await check().then(
        () => writeFile(path, released),
        () => undefined, // another process has it
      );
    },
  };
}

async function refuseHeld(folder: string, number: number): Promise<void> {
  const path = pathOf(folder, number);
  const owner = await ownerOf(folder, path);
  if (owner === null || (owner.place === (await placeOfIds()) && !isRunning(owner.pid))) return;
  if ((await ageMs(folder, path)) < expiryMs) throw taken(` (process ${owner.pid} on ${owner.host})`);
}

/** Null when the lock was released, or its writer was killed before its text was whole. */
async function ownerOf(folder: string, path: string): Promise<Owner | null> {
  for (;;) {
    const text = await textOf(path);
    if (text === undefined || text === released) return null;
    const owner = parsedOwner(text);
    if (owner !== null || (await ageMs(folder, path)) >= writingMsMax) return owner;
    await sleep(writingPauseMs);
  }
}

/** Age by the clock of the file system: those of two hosts can differ. */
async function ageMs(folder: string, path: string): Promise<number> {
  const clock = join(folder, `clock-${randomUUID()}`);
  await writeFile(clock, '');
  const [now, then] = [await stat(clock), await stat(path).catch(() => null)];
  await rm(clock);
  return then === null ? 0 : now.mtimeMs - then.mtimeMs;
}

/** The place in which a process id means the same: on Linux a namespace of a host since its start, elsewhere the host. */
async function placeOfIds(): Promise<string> {
  const parts = [readFile('/proc/sys/kernel/random/boot_id', 'utf8'), readlink('/proc/self/ns/pid')];
  return Promise.all(parts).then(([boot, namespace]) => `${boot?.trim()} ${namespace}`, hostname);
}

/** A process with our own id has ended: it had the id before us. */
function isRunning(pid: number): boolean {
  if (pid === process.pid) return false;
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

function parsedOwner(text: string): Owner | null {
  try {
    return JSON.parse(text) as Owner;
  } catch {
    return null;
  }
}

async function locks(folder: string): Promise<number[]> {
  return (await readdir(folder)).flatMap((name) => Number(form.exec(name)?.[1] ?? []));
}

async function newestLock(folder: string): Promise<number> {
  return Math.max(0, ...(await locks(folder)));
}

const pathOf = (folder: string, number: number): string => join(folder, `lock-${String(number).padStart(6, '0')}`);
const textOf = (path: string): Promise<string | undefined> => readFile(path, 'utf8').catch(() => undefined);

function taken(by = ''): DestinationUnusable {
  return new DestinationUnusable(
    `Another process${by} pulls into this destination, or did so until less than a minute ago.`,
  );
}
