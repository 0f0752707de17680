import pg from 'pg';
import type { Statement } from '../../src/postgres/statement.js';

export interface Plan {
  readonly 'Shared Hit Blocks': number;
  readonly 'Shared Read Blocks': number;
  readonly Plans?: readonly Plan[];
  readonly 'Node Type': string;
  readonly 'Index Cond'?: string;
  readonly 'Recheck Cond'?: string;
  readonly Filter?: string;
  readonly 'Index Name'?: string;
}

function execution({ parameters }: Statement, values: Readonly<Record<string, string | number>>): string {
  const literals = parameters.map((name) => pg.escapeLiteral(String(values[name])));
  return `execute guarded${literals.length > 0 ? `(${literals.join(', ')})` : ''}`;
}

export async function analyzed(
  client: pg.Client,
  statement: Statement,
  values: Readonly<Record<string, string | number>>,
): Promise<Plan> {
  const { rows } = await client.query<{ 'QUERY PLAN': [{ Plan: Plan }] }>(
    `explain (analyze, buffers, format json) ${execution(statement, values)}`,
  );
  return rows[0]?.['QUERY PLAN'][0].Plan as Plan;
}

export function buffersIn(plan: Plan): number {
  return plan['Shared Hit Blocks'] + plan['Shared Read Blocks'];
}

export function indexesOf(plan: Plan): string[] {
  return [...new Set(scansOf(plan).map((scan) => (scan['Index Name'] ?? '').replace(/_(\d{4}|default)(?=_|$)/, '')))];
}

/** Scans of the app's tables; those of a work order's parts go by the work order. */
function scansOf(plan: Plan): Plan[] {
  const own = /^(Index|Seq|Bitmap Heap)/.test(plan['Node Type']) ? [plan] : [];
  return [...own, ...(plan.Plans ?? []).flatMap(scansOf)];
}
