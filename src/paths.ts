import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Absolute path of the folder that holds package.json: sql/ and config/ are found from it, in src and in dist alike. */
export const projectRoot: string = findRoot(dirname(fileURLToPath(import.meta.url)));

function findRoot(folder: string): string {
  if (existsSync(join(folder, 'package.json'))) return folder;
  return findRoot(dirname(folder));
}

/** The text of a file of the project, such as config/default.json. */
export function projectText(path: string): string {
  return readFileSync(join(projectRoot, path), 'utf8');
}
