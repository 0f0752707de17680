import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { projectText } from '../../src/paths.js';
import { isReached } from '../result.js';
import { markdownTable, outcome } from './files.js';
import { type Report, verdictTable } from './text.js';

const begin = '<!-- measured: written by the benchmark -->';
const end = '<!-- end of the measured part -->';

/** Writes a page of docs with its measured part renewed to the folder; the prose around it is kept. */
export function writeSection(page: string, folder: string, report: Report): void {
  const text = projectText(`docs/${page}`);
  const [from, to] = [text.indexOf(begin), text.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`docs/${page} does not mark its measured part.`);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, page), `${text.slice(0, from)}${begin}\n\n${measured(report)}\n${text.slice(to)}`);
}

function measured({ verdicts, tables, skipped, machine }: Report): string {
  const facts = machine.map(([label, value]) => `- ${label}: ${value}`).join('\n');
  const missed = verdicts.filter((verdict) => !isReached(verdict));
  const goals = verdicts.length === 0 ? [] : [verdictTable(verdicts)];
  return [
    facts,
    ...(verdicts.length === 0 ? [] : [`\n${outcome(verdicts.length, missed)}`]),
    [...goals, ...tables].map(markdownTable).join(''),
    ...(skipped.length === 0 ? [] : [`${skipped.join(' ')}\n`]),
  ].join('\n');
}
