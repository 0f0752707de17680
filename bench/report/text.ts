import type { CaseResult, Table } from '../result.js';
import { figure, isReached, type Verdict } from '../result.js';
import type { MachineFacts } from './machine.js';

/** All that a run found. */
export interface Report extends CaseResult {
  readonly machine: MachineFacts;
}

/** The verdicts as a table like any other. */
export function verdictTable(verdicts: readonly Verdict[]): Table {
  return {
    title: 'Goals',
    note: 'Medians of runs in turns, each next to its comparison; a ratio is the median of the pairs.',
    head: ['', 'measured', 'goal', ''],
    rows: verdicts.map((verdict) => [
      verdict.what,
      `${figure(verdict.value)} ${verdict.unit}`,
      `${verdict.bound} ${verdict.goal} ${verdict.unit}`,
      isReached(verdict) ? 'reached' : 'missed',
    ]),
  };
}

/** The report for a terminal. */
export function textReport({ verdicts, tables, skipped, machine }: Report): string {
  const facts = machine.map(([label, value]) => `${label} ${value}`).join(', ');
  const all = [verdictTable(verdicts), ...tables].map(textTable);
  return `\n${facts}\n\n${all.join('\n')}${skipped.map((why) => `${why}\n`).join('')}`;
}

function textTable({ title, note, head, rows }: Table): string {
  const lines = [head, ...rows];
  const widths = head.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  const aligned = lines.map((line) =>
    line.map((cell, i) => (i === 0 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0))).join('  '),
  );
  return `${title}\n${note}\n\n${aligned.map((line) => `  ${line}\n`).join('')}`;
}
