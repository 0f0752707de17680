import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * Absolute path of the folder that holds package.json: sql/ and config/ are found from it, in a clone, a package and an image. Where there
 * is none it is that of the program, and the first command that reads a file names it as missing.
 */
export const projectRoot: string = findRoot(dirname(fileURLToPath(import.meta.url)));

function findRoot(start: string): string {
  let folder = start;
  while (!existsSync(join(folder, 'package.json'))) {
    if (folder === dirname(folder)) return start;
    folder = dirname(folder);
  }
  return folder;
}

/**
 * The text of a file that an operator wrote, without the byte order mark that editors of Windows put before it. Throws an error when
 * it is in another encoding, of which every other letter than those of ASCII would be lost.
 */
export function readText(path: string): string {
  const bytes = readFileSync(path);
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new Error('it is not UTF-8');
  }
}

/** Why readText failed: the code of the system, else the message. */
export function readFault(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return code ?? message;
}

/** The text of a file of the project, such as config/default.json. */
export function projectText(path: string): string {
  return readFileSync(join(projectRoot, path), 'utf8');
}
