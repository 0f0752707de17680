import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { cpus, release, totalmem, type } from 'node:os';
import { join } from 'node:path';
import { readProject } from '../src/base/paths.js';
import { median } from './rounds.js';

const { version: packageVersion } = JSON.parse(readProject('package.json')) as { readonly version: string };

export interface Options {
  /** Length of one load run, in seconds. */
  readonly seconds: number;
  /** Number of turns of each contender. */
  readonly rounds: number;
  /** Rows of the large workspace of the case scale. */
  readonly workOrders: number;
}

/** A floor under a figure, or a ceiling over it. */
export interface Goal {
  readonly bound: 'at most' | 'at least';
  readonly value: number;
  readonly unit: '×' | 'ms' | 'MB';
}

export interface Table {
  readonly title: string;
  /** Explanation for the reader of the table. */
  readonly note: string;
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/** A value, or the values of the turns. */
export type Figure = number | readonly number[];

/** Result of a case: its figures by the names under which the goals stand, and tables with the rest. */
export interface Measured {
  readonly figures: Readonly<Record<string, Figure>>;
  readonly tables: readonly Table[];
}

/** Findings of a whole run. */
export interface Report extends Measured {
  readonly goals: Readonly<Record<string, Goal>>;
  readonly faults: readonly string[];
  readonly postgresVersion: string;
}

/** Ratios from this one to its inverse are called level. */
const levelBelow = 1.15;

/** The commit of the working tree, and whether files differ from it. */
function commit(): string {
  const git = (...args: string[]): string => spawnSync('git', args, { encoding: 'utf8' }).stdout?.trim() ?? '';
  return `${git('rev-parse', '--short', 'HEAD') || 'unknown'}${git('status', '--porcelain') && ', with changes'}`;
}

/** Keeps three figures, because such measurements carry no more. */
export function figure(value: number): string {
  if (Number.isNaN(value)) return '–';
  const digits = value === 0 ? 0 : Math.min(2, Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value)))));
  return value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** Writes the whole report as Markdown. */
export function markdown({ figures, tables, goals, faults, postgresVersion }: Report): string {
  const judged = Object.entries(goals).map(([what, { bound, value, unit }]) => {
    const values = [figures[what] ?? Number.NaN].flat().sort((a, b) => a - b);
    const [least, most, measured] = [values[0] as number, values.at(-1) as number, median(values)];
    const isReached = bound === 'at most' ? measured <= value : measured >= value;
    const isLevel = unit === '×' && Math.max(measured, 1 / measured) < levelBelow;
    const spread = values.length > 1 ? `${figure(least)} to ${figure(most)}` : 'one run';
    const verdict = `${isReached ? 'reached' : 'missed'}${isLevel ? ', level' : ''}`;
    return { isReached, row: [what, `${figure(measured)} ${unit}`, spread, `${bound} ${value} ${unit}`, verdict] };
  });
  const reached = judged.filter(({ isReached }) => isReached).length;
  const facts = [
    `${new Date().toISOString().slice(0, 10)}, ${cpus().length} × ${cpus()[0]?.model.trim() ?? 'unknown processor'}, ${Math.round(totalmem() / 1e9)} GB`,
    `Version ${packageVersion}, commit ${commit()}`,
    `${type()} ${release().split('-')[0]}, Node.js ${process.versions.node}, PostgreSQL ${postgresVersion}`,
  ];
  const verdicts: Table = {
    title: 'Goals',
    note: `${reached} of ${judged.length} goals are reached. Figures are medians of the turns, with the lowest and the highest turn; ratios are of pairs of turns that ran next to each other. A ratio that differs from 1 by less than 15 % is level.`,
    head: ['', 'median', 'spread', 'goal', ''],
    rows: judged.map(({ row }) => row),
  };
  return `${facts.map((fact) => `- ${fact}\n`).join('')}${[verdicts, ...tables].map(markdownTable).join('')}${faults.map((fault) => `\n${fault}\n`).join('')}`;
}

/** Writes the page to the folder. */
export function writePage(
  folder: string,
  { file, title, about }: { file: string; title: string; about: string },
  text: string,
): void {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, file), `# ${title}\n\n${about}\n\n${text}`);
}

function markdownTable({ title, note, head, rows }: Table): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |\n`;
  const rule = head.map((_, i) => (i === 0 ? '---' : '---:'));
  return `\n## ${title}\n\n${note}\n\n${line(head)}${line(rule)}${rows.map(line).join('')}`;
}
