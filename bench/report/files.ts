import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isReached, type Table, type Verdict } from '../result.js';
import { chart } from './chart.js';
import { type Report, verdictTable } from './text.js';

/** Writes performance.md and performance.svg to the folder. */
export function writeReport(folder: string, report: Report): void {
  mkdirSync(folder, { recursive: true });
  const ratios = report.verdicts.filter(({ unit }) => unit === '×');
  writeFileSync(join(folder, 'performance.svg'), chart(ratios));
  writeFileSync(join(folder, 'performance.md'), markdown(report));
}

function markdown({ verdicts, tables, skipped, machine }: Report): string {
  const missed = verdicts.filter((verdict) => !isReached(verdict));
  return `# Performance

Written by \`npm run bench\`, which measures the gateway in turns with its alternatives: a primary, a streaming
replica with 200,000 work orders, the gateway and every other contender are processes of one machine, so the ratios say
more than the figures. Read [operators-guide.md](operators-guide.md) for settings and sizing.

${machine.map(([label, value]) => `- ${label}: ${value}`).join('\n')}

![Ratios against their goals](performance.svg)

${outcome(verdicts.length, missed)}
${[verdictTable(verdicts), ...tables].map(markdownTable).join('')}
## Contenders

- **gateway**: everything it does for every request: token, rate limit, workspace guard, conditional headers, metrics,
  read-your-writes. Only the rate limit is lifted, and nothing but warnings is logged.
- **bare node:http + pg**: two pipelined connections that run the gateway's own prepared statements, and send
  its headers as constants; lists are one value that PostgreSQL's \`json_agg\` makes. No gateway in Node.js can be much faster.
- **Fastify + pg** (bench/peers/fastify): Fastify 5 as written in an afternoon: tokens cached, \`@fastify/rate-limit\`,
  response schemas, a pool of 8, prepared statements on the same views, an ETag, pages by cursor. It sets the workspace
  once per connection, which is cheaper than the gateway's guard and does not survive a transaction pooler.
- **Platformatic DB** (bench/peers/platformatic): REST over the table itself, without authentication, a pool of 8.
- **PostgREST** takes part when \`POSTGREST_BIN\` names its binary.
${skipped.length > 0 ? `\n${skipped.join(' ')}\n` : ''}`;
}

/** A sentence with the number of goals reached, and the names of the others. */
export function outcome(goals: number, missed: readonly Verdict[]): string {
  if (missed.length === 0) return `All ${goals} goals are reached.`;
  return `${goals - missed.length} of ${goals} goals are reached. Missed: ${missed.map(({ what }) => what).join('; ')}.`;
}

export function markdownTable({ title, note, head, rows }: Table): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |\n`;
  const rule = head.map((_, i) => (i === 0 ? '---' : '---:'));
  return `\n## ${title}\n\n${note}\n\n${line(head)}${line(rule)}${rows.map(line).join('')}`;
}
