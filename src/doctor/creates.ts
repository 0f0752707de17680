import type pg from 'pg';
import type { Resource } from '../resource/definition/resource.js';
import { sql } from '../resource/statements/sql.js';
import { getGivenColumns } from '../resource/statements/walls.js';
import { type Item, nameFile, readCheckSql, sumUp } from './finding.js';
import type { QueryPlan } from './scans.js';
import { runReadOnly } from './session.js';

/** Refuses a POST that gives a required column no value. The plan of an INSERT shows each value, even from a default of a view. */
export function checkCreate(client: pg.Client, resource: Resource): Promise<Item[]> {
  const { write, file } = resource;
  const { inserted } = write ? getGivenColumns(resource, write) : { inserted: [] };
  if (write === undefined || inserted.length === 0) return Promise.resolve([]);
  const rows = sql.raw(`json_populate_record(null::??, '{}') r`, [write.view]);
  const insert = sql(sql.raw('?? (??)', [write.view, inserted])).insert(
    sql.from(rows).select(inserted.map((name) => `r.${name}`)),
  );
  const look = async (): Promise<Item[]> => {
    const planned = await client.query(`explain (verbose, costs off, format json) ${insert.toQuery()}`);
    const { Schema: schema, 'Relation Name': table, Plans = [] } = planned.rows[0]['QUERY PLAN'][0].Plan as QueryPlan;
    const [values] = Plans.filter((plan) => plan['Parent Relationship'] === 'Outer');
    const without = (values?.Output ?? []).flatMap((value, i) => (/^NULL::/.test(value) ? [i + 1] : []));
    const { rows } = await client.query<{ names: string | null }>(
      readCheckSql('required').replace('{fills}', () => readCheckSql('fills')),
      [schema, table, without],
    );
    const fault = `a new record leaves ${rows[0]?.names} of ${schema}.${table} without a value, which the table refuses`;
    const advice = `Give the column a default, or a field with "write" and "required", or fill it by "onCreate"; or set "creates" to false, so that there is no POST.`;
    return rows[0]?.names ? [{ ...sumUp('write_view', nameFile([fault], { file }), '', write.view), advice }] : [];
  };
  return runReadOnly(client, { object: write.view, settings: `set local search_path = ''` }, look, () => []);
}
