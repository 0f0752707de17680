import type pg from 'pg';
import type { Statement } from '../db/statement.js';

/** A node of a plan as EXPLAIN (FORMAT JSON) prints it. */
export interface Plan {
  readonly 'Node Type': string;
  readonly 'Parent Relationship'?: string;
  readonly 'Relation Name'?: string;
  readonly Schema?: string;
  readonly 'CTE Name'?: string;
  readonly 'Subplan Name'?: string;
  readonly 'Join Type'?: string;
  readonly Output?: readonly string[];
  readonly 'Index Name'?: string;
  readonly 'Plan Rows': number;
  readonly Alias?: string;
  readonly 'Index Cond'?: string;
  readonly 'Recheck Cond'?: string;
  readonly 'Hash Cond'?: string;
  readonly 'Merge Cond'?: string;
  readonly 'Join Filter'?: string;
  readonly Filter?: string;
  readonly Plans?: readonly Plan[];
}

/** The generic plan of a statement, in a transaction whose plan_cache_mode is force_generic_plan. */
export async function explain(client: pg.Client, { text, parameters }: Statement): Promise<Plan> {
  const values = parameters.length === 0 ? '' : ` (${parameters.map(() => 'null').join(', ')})`;
  const results: unknown = await client.query(
    `prepare checked as ${text}; explain (format json) execute checked${values}; deallocate checked`,
  );
  const [, explained] = results as pg.QueryResult<{ 'QUERY PLAN': [{ Plan: Plan }] }>[];
  return (explained as pg.QueryResult<{ 'QUERY PLAN': [{ Plan: Plan }] }>).rows[0]?.['QUERY PLAN'][0].Plan as Plan;
}

/** Whether the node makes a part of a row: it runs for the rows of a page alone. */
export function isOfRow(plan: Plan): boolean {
  return /^(SubPlan|InitPlan)$/.test(plan['Parent Relationship'] ?? '');
}
