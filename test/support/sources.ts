import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { projectRoot } from '../../src/paths.js';

/** A file of the project as the keepers of its order see it. */
export interface Source {
  /** From the project's root, with forward slashes: "src/read/list.ts". */
  readonly path: string;
  readonly text: string;
  /** The text without comments, for rules about code; line numbers stay. */
  readonly code: string;
}

/** One import of a file of the project: what is imported and from where. */
export interface Import {
  readonly from: string;
  readonly to: string;
  /** Names imported; "*" for all of them; none when the file is run as a process of its own. */
  readonly names: readonly string[];
  readonly runs: boolean;
}

/** The files below a folder whose name ends in `extension`; nothing that npm installed or a build made. */
export function sourcesIn(folder: string, extension: string): Source[] {
  return readdirSync(join(projectRoot, folder), { recursive: true, encoding: 'utf8' })
    .map((name) => posix.join(folder, name.replaceAll('\\', '/')))
    .filter((path) => path.endsWith(extension) && !/(^|\/)(node_modules|dist)\//.test(path))
    .sort()
    .map((path) => {
      const text = readFileSync(join(projectRoot, path), 'utf8');
      return { path, text, code: withoutComments(text) };
    });
}

const staticImport = /^(?:import|export) (?:type )?(?:([^'"]*?) from )?'(\.{1,2}\/[^']+)';/gms;
const dynamicImport = /import\('(\.{1,2}\/[^']+)'\)\)?\)?(?:\.(\w+))?/g;
/** A file that is run as a process of its own is named by its URL. */
const runFile = /new URL\('(\.{1,2}\/[^']+\.js)', import\.meta\.url\)/g;

/** Every import of another file of the project, type imports included. */
export function importsOf({ path, code }: Source): Import[] {
  const resolve = (target: string): string => posix.join(dirname(path), target).replace(/\.js$/, '.ts');
  const found = (pattern: RegExp): RegExpExecArray[] => [...code.matchAll(pattern)];
  return [
    ...found(staticImport).map(([, names = '', target]) => ({
      from: path,
      to: resolve(target as string),
      names: namesIn(names),
      runs: false,
    })),
    ...found(dynamicImport).map(([, target, name]) => ({
      from: path,
      to: resolve(target as string),
      names: [name ?? '*'],
      runs: false,
    })),
    ...found(runFile).map(([, target]) => ({ from: path, to: resolve(target as string), names: [], runs: true })),
  ];
}

/** "{ a, type B as C }" → a, B. */
function namesIn(clause: string): string[] {
  if (clause.includes('*')) return ['*'];
  const inner = clause.replace(/[{}]/g, ' ').split(',');
  return inner
    .map(
      (name) =>
        name
          .trim()
          .replace(/^type /, '')
          .split(/\s+as\s+/)[0] as string,
    )
    .filter((name) => name !== '');
}

/** Regular expressions, texts and comments, whichever begins first. */
const lexical =
  /(?<=[=(,:[!&|?{};>]\s*)\/(?![*/])(?:[^/\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`|\/\*[\s\S]*?\*\/|\/\/.*$/gm;

function withoutComments(text: string): string {
  return text.replace(lexical, (found) => (/^\/[*/]/.test(found) ? found.replace(/[^\n]/g, ' ') : found));
}
