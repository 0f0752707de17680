import { mkdirSync, writeFileSync } from 'node:fs';
import { cpus, release, totalmem, type } from 'node:os';
import { join } from 'node:path';

export interface Options {
  /** Length of one load run, in seconds. */
  readonly seconds: number;
  /** How often each contender gets its turn. */
  readonly rounds: number;
  /** Of the large workspace of the case scale. */
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

/** Result of a case: its figures by the names under which the goals stand, and tables with the rest. */
export interface Measured {
  readonly figures: Readonly<Record<string, number>>;
  readonly tables: readonly Table[];
}

/** All that a run found. */
export interface Report extends Measured {
  readonly goals: Readonly<Record<string, Goal>>;
  readonly faults: readonly string[];
  readonly postgresVersion: string;
}

/** Three figures are all that such measurements carry. */
export function figure(value: number): string {
  if (Number.isNaN(value)) return '–';
  const digits = value === 0 ? 0 : Math.min(2, Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value)))));
  return value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** The whole report as Markdown. */
export function markdown({ figures, tables, goals, faults, postgresVersion }: Report): string {
  const judged = Object.entries(goals).map(([what, { bound, value, unit }]) => {
    const measured = figures[what] ?? Number.NaN;
    const isReached = bound === 'at most' ? measured <= value : measured >= value;
    return {
      isReached,
      row: [what, `${figure(measured)} ${unit}`, `${bound} ${value} ${unit}`, isReached ? 'reached' : 'missed'],
    };
  });
  const reached = judged.filter(({ isReached }) => isReached).length;
  const facts = [
    `${new Date().toISOString().slice(0, 10)}, ${cpus().length} × ${cpus()[0]?.model.trim() ?? 'unknown processor'}, ${Math.round(totalmem() / 1e9)} GB`,
    `${type()} ${release().split('-')[0]}, Node.js ${process.versions.node}, PostgreSQL ${postgresVersion}`,
  ];
  const verdicts: Table = {
    title: 'Goals',
    note: `${reached} of ${judged.length} goals are reached. Ratios are medians of pairs of turns that ran next to each other.`,
    head: ['', 'measured', 'goal', ''],
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
