import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** A clone, a package and an image have package.json in this folder; otherwise the root is the program's folder. */
export const projectRoot: string = findRoot(dirname(fileURLToPath(import.meta.url)));

function findRoot(start: string): string {
  let folder = start;
  while (!existsSync(join(folder, 'package.json'))) {
    if (folder === dirname(folder)) return start;
    folder = dirname(folder);
  }
  return folder;
}

/** Reads a file of the operator without its byte order mark. Throws unless it is UTF-8. */
export function readText(path: string): string {
  const bytes = readFileSync(path);
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new Error('it is not UTF-8');
  }
}

/** Lists an operator's files in order, without hidden ones: macOS leaves ._klanten.sql beside klanten.sql on other disks. */
export function listNames(folder: string, ending: '.json' | '.sql', explain: (fault: string) => Error): string[] {
  try {
    const names = readdirSync(folder).filter((name) => name.endsWith(ending) && !name.startsWith('.'));
    return names.sort();
  } catch (error) {
    throw explain(readFault(error));
  }
}

export function readFault(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return code ?? message;
}

export function readProject(path: string): string {
  return readFileSync(join(projectRoot, path), 'utf8');
}

let version: string | undefined;

/** Reads the version of the program once: an upgrade replaces the file while the process runs. The API has a version, too. */
export function readVersion(): string {
  version ??= (JSON.parse(readProject('package.json')) as { version: string }).version;
  return version;
}
