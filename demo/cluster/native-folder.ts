import { execFile } from 'node:child_process';
import { existsSync, lstatSync, readdirSync, readFileSync, statSync, symlinkSync } from 'node:fs';
import { cp, mkdtemp, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join, relative } from 'node:path';
import { promisify } from 'node:util';

/**
 * Makes the library links that npm cannot pack (the package's install script makes them where scripts may run).
 * Several processes may do so at once: a link is made in one step and a present one is left alone. False when not allowed.
 */
export function linkLibraries(native: string): boolean {
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
export async function privateCopy(native: string): Promise<string> {
  const { name, version } = JSON.parse(readFileSync(join(native, '..', 'package.json'), 'utf8'));
  const folder = join(tmpdir(), `postgres-${basename(name)}-${version}-uid${process.getuid?.()}`);
  const copy = join(folder, 'native');
  if (isOurs(folder) && sameFiles(native, copy)) return copy;

  const made = await mkdtemp(`${folder}-`);
  await cp(native, join(made, 'native'), { recursive: true, verbatimSymlinks: true });
  linkLibraries(join(made, 'native'));
  // The original may have been unpacked under a strict umask.
  await promisify(execFile)('chmod', ['-R', 'u=rwX,go=rX', made]);
  // Present but incomplete: a cleaner of temporary files has been at it.
  if (isOurs(folder) && !sameFiles(native, copy)) await rm(folder, { recursive: true, force: true });
  await rename(made, folder).catch(() => rm(made, { recursive: true, force: true }));
  if (!isOurs(folder)) throw new Error(`${folder} cannot be made or is another user's: remove it, or set PG_BIN.`);
  return copy;
}

/** The temporary directory is open to all users: a folder in it is trusted only if it is ours and only we can write it. */
function isOurs(folder: string): boolean {
  const found = lstatSync(folder, { throwIfNoEntry: false });
  return !!found?.isDirectory() && found.uid === process.getuid?.() && (found.mode & 0o022) === 0;
}

function sameFiles(original: string, copy: string): boolean {
  return readdirSync(original, { recursive: true, encoding: 'utf8' }).every((name) => {
    const [there, here] = [original, copy].map((folder) => statSync(join(folder, name), { throwIfNoEntry: false }));
    return !there || (there.isDirectory() ? here?.isDirectory() : here?.size === there.size);
  });
}
