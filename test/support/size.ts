import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { projectRoot } from '../../src/base/paths.js';

// `npm run size`: the size of the project beside its budgets. Exits with 1 when one is exceeded.

interface Size {
  readonly name: string;
  readonly now: number;
  readonly budget: number;
}

function filesIn(folder: string, ending = ''): string[] {
  const path = join(projectRoot, folder);
  if (!existsSync(path)) return [];
  return readdirSync(path, { recursive: true, withFileTypes: true })
    .map((entry) => ({ entry, file: join(entry.parentPath, entry.name) }))
    .filter(({ entry, file }) => entry.isFile() && file.endsWith(ending) && !file.includes('node_modules'))
    .map(({ file }) => file);
}

const textOf = (file: string): string => (existsSync(file) ? readFileSync(file, 'utf8') : '');
const lines = (files: readonly string[]): number =>
  files.reduce((sum, file) => sum + textOf(file).split('\n').length - 1, 0);
const page = (name: string): string => join(projectRoot, name);
/** The gateway and the commands of its operator; `pull` and `demo` are programs of their own. */
const src = filesIn('src', '.ts').filter((file) => !/\/src\/(pull|demo)\//.test(file));
/** The files shared by all tests; each folder in it belongs to a few. */
const support = filesIn('test/support').filter((file) => dirname(file).endsWith('support'));
const { properties } = JSON.parse(textOf(page('config/settings.schema.json'))) as { properties: object };

const sizes: readonly Size[] = [
  { name: 'src, lines', now: lines(src), budget: 25_580 },
  { name: 'src, files', now: src.length, budget: 196 },
  { name: 'settings', now: Object.keys(properties).length, budget: 56 },
  { name: 'test, lines', now: lines(filesIn('test')), budget: 39_050 },
  { name: 'support of these, lines', now: lines(support), budget: 3500 },
  { name: 'bench, lines', now: lines(filesIn('bench')), budget: 4500 },
];

const exceeded = sizes.filter(({ now, budget }) => now > budget);
const rows = sizes.map(({ name, now, budget }) => {
  const mark = now > budget ? '  exceeds the budget' : '';
  return `${name.padEnd(24)}${String(now).padStart(7)} of ${String(budget).padStart(6)}${mark}`;
});
process.stdout.write(`${rows.join('\n')}\n`);
process.exitCode = exceeded.length > 0 ? 1 : 0;
