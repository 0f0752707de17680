import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, posix, relative } from 'node:path';
import { projectRoot } from '../../src/base/paths.js';

export interface Source {
  /** It begins at the project's root, with forward slashes: "src/serve/read/list.ts". */
  readonly path: string;
  readonly text: string;
  /** The text without comments, for rules about code; line numbers stay. */
  readonly code: string;
}

interface Import {
  readonly from: string;
  readonly to: string;
}

export function sourcesIn(folder: string, extension: string): Source[] {
  return readdirSync(join(projectRoot, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => relative(projectRoot, join(parentPath, name)).replaceAll('\\', '/'))
    .filter((path) => path.endsWith(extension) && !/(^|\/)(node_modules|dist)\//.test(path))
    .sort()
    .map((path) => {
      const text = readFileSync(join(projectRoot, path), 'utf8');
      return { path, text, code: withoutComments(text) };
    });
}

const importedPath = /^(?:import|export) (?:[^'"]*? from )?'(\.{1,2}\/[^']+)';|import\('(\.{1,2}\/[^']+)'\)/gms;

export function importsOf({ path, code }: Source): Import[] {
  return [...code.matchAll(importedPath)].map(([, fixed, loaded]) => ({
    from: path,
    to: posix.join(dirname(path), (fixed ?? loaded) as string).replace(/\.js$/, '.ts'),
  }));
}

/** Regular expressions, texts and comments, whichever begins first. */
const lexical =
  /(?<=[=(,:[!&|?{};>]\s*)\/(?![*/])(?:[^/\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`|\/\*[\s\S]*?\*\/|\/\/.*$/gm;

function withoutComments(text: string): string {
  return text.replace(lexical, (found) => (/^\/[*/]/.test(found) ? found.replace(/[^\n]/g, ' ') : found));
}
