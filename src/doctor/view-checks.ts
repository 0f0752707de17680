import type pg from 'pg';
import { readProject } from '../base/paths.js';
import { getType } from '../resource/definition/field-types.js';
import type { Field, Resource } from '../resource/definition/resource.js';
import { getColumns, getPlace, listLeaves, rowXid } from '../resource/definition/resource.js';
import { listCodecColumns } from '../resource/projection/codec.js';
import { sql } from '../resource/statements/knex.js';
import {
  byLogins,
  composePolicy,
  getGivenColumns,
  getPlainViews,
  getViews,
  makeWalls,
} from '../resource/statements/walls.js';
import { runReadOnly } from './check-session.js';
import { type FindingCode, type Item, makeItem, readCheckSql, summarizeFaults } from './finding.js';
import { readPlan } from './plan-scans.js';

/** A need of the gateway that sql/check/views.sql compares with the database. */
export interface ViewNeed {
  readonly code: FindingCode;
  readonly object: string;
  /** File that the operator corrects; null: no definition needs the views. */
  readonly file: string | null;
  readonly ok: string;
  readonly views: readonly string[];
  /** Views whose owner and row-level security are checked. */
  readonly plain: readonly string[];
  readonly columns: readonly NeededColumn[];
}

interface NeededColumn {
  readonly view: string;
  readonly name: string;
  /** Allowed types; an empty list allows any. */
  readonly types: readonly string[];
  /** Key of the definition, in parentheses; empty: every resource needs the column. */
  readonly at: string;
  readonly privilege: 'select' | 'insert' | 'update';
  /** If true, the role must have the privilege; otherwise it must not. */
  readonly may: boolean;
}

const [policy, gatewayCondition] = [composePolicy('%1$s', 'select', '%2$s'), byLogins].map((sql) =>
  sql.replaceAll(/\s+/g, ' '),
);

/** Returns an item per need, or a single one when no view can be named. */
export function checkViews(client: pg.Client, needs: readonly ViewNeed[]): Promise<Item[]> {
  const compare = async (): Promise<Item[]> =>
    (await client.query<Item>(readCheckSql('views'), [JSON.stringify(needs), policy, gatewayCondition])).rows;
  return runReadOnly(client, {}, compare, ({ message }) => [makeItem('refused', 'schema_usage', `${message}.`)]);
}

/** Compares the files `only`, or all. `scans` reports a locked view. */
export function checkApplied(client: pg.Client, resources: readonly Resource[], only?: string[]): Promise<Item[]> {
  const viewsOf = (resource: Resource): string[] => getPlainViews(resource).concat(resource.write?.view ?? []);
  const views = new Map(resources.map((resource) => [resource.name, viewsOf(resource)]));
  const walls = makeWalls(resources).map(({ name, hash }) => ({ name, hash, views: views.get(name) ?? [] }));
  const compare = async (): Promise<Item[]> =>
    (await client.query<Item>(readCheckSql('migrated'), [JSON.stringify(walls), only])).rows;
  const bounds = { object: null, settings: 'set local quote_all_identifiers = off' }; // names as `migrate` noted them
  return runReadOnly(client, bounds, compare, ({ message }) => [
    makeItem('refused', 'migrated', `what \`migrate\` applied cannot be read: ${message}.`),
  ]);
}

export async function readAppliedNames(client: pg.Client): Promise<string[]> {
  const text = `select root || '/' || name as file from gateway.applied_files where digest is not null`;
  return (await client.query<{ file: string }>(text)).rows.map(({ file }) => file);
}

export function getViewNeed(resource: Resource): ViewNeed {
  const { view, sync, codecs, idType, file } = resource;
  const requireColumn = (of: string, name: string, types: readonly string[], key: string): NeededColumn => {
    return { view: of, name, types, at: key && ` (${key})`, privilege: 'select', may: true };
  };
  const requireXid = (of: string): NeededColumn[] => (sync ? [requireColumn(of, rowXid, ['xid'], '/sync')] : []);
  const usedColumns = getColumns(resource);
  const ownColumns = [
    ...Object.entries(codecs).flatMap(([name, codec]) =>
      listCodecColumns(codec).flatMap((column) =>
        usedColumns.includes(column) ? [requireColumn(view, column, [], `/codecs/${name}`)] : [],
      ),
    ),
    ...requireXid(view),
    ...listLeaves(resource).map(({ field, path }) =>
      requireColumn(view, field.column, listColumnTypes(field, resource), `${getPlace(path)}/column`),
    ),
  ];
  const partColumns = Object.entries(sync?.parts ?? {}).flatMap(([name, part]) => [
    ...requireXid(part.view),
    requireColumn(part.view, 'id', getType(idType).columnTypes, ''),
    requireColumn(part.view, 'part_id', getType(part.idType).columnTypes, `/sync/parts/${name}/idType`),
  ]);
  const { horizonHours } = sync?.appendOnly ?? {};
  const horizon = horizonHours && ` Sync passes look back ${horizonHours} hours: no transaction must stay open longer.`;
  return {
    code: 'view',
    object: view,
    file,
    ok: `Every column is there.${horizon ?? ''}`,
    views: getViews(resource),
    plain: getPlainViews(resource),
    columns: [...new Map(ownColumns.map((column) => [column.name, column])).values(), ...partColumns],
  };
}

function listColumnTypes({ type, pointer, codec }: Field, { codecs }: Resource): readonly string[] {
  if (codec !== undefined) return codecs[codec]?.encoding === 'bytea' ? ['bytea'] : getType('text').columnTypes;
  return getType(pointer === undefined ? type : 'json').columnTypes;
}

/** Requires exactly the write scope; an INSERT must not set a column that only the app fills. */
export function listWriteNeeds(resource: Resource): ViewNeed[] {
  const { write, file } = resource;
  if (write === undefined) return [];
  const { view } = write;
  const fields = listLeaves(resource);
  const places = new Map(fields.map(({ field, path }) => [field.column, ` (${getPlace(path)}/write)`]));
  const { inserted, updated } = getGivenColumns(resource, write);
  const shownColumns = getColumns(resource);
  const requirePrivilege = (privilege: 'insert' | 'update', allowed: readonly string[]) => (name: string) => {
    return { view, name, types: [], at: places.get(name) ?? '', privilege, may: allowed.includes(name) };
  };
  return [
    {
      code: 'write_view',
      object: view,
      file,
      ok: 'The role may write the fields of the write scope and no other.',
      views: [view],
      plain: [view],
      columns: [
        ...[...new Set([...shownColumns, ...updated])].map(requirePrivilege('update', updated)),
        ...[...new Set([...shownColumns, ...inserted])]
          .filter((name) => name !== 'id')
          .map(requirePrivilege('insert', inserted)),
      ],
    },
  ];
}

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
    const { Schema: schema, 'Relation Name': table, Plans = [] } = await readPlan(client, insert.toQuery());
    const [values] = Plans.filter((plan) => plan['Parent Relationship'] === 'Outer');
    const without = (values?.Output ?? []).flatMap((value, i) => (/^NULL::/.test(value) ? [i + 1] : []));
    const { rows } = await client.query<{ names: string | null }>(
      readCheckSql('required').replace('{fills}', () => readProject('sql/catalog/fills.sql')),
      [schema, table, without],
    );
    if (!rows[0]?.names) return [];
    const fault = `a new record leaves ${rows[0].names} of ${schema}.${table} without a value, which the table refuses`;
    const advice = `Give the column a default, or a field with "write" and "required", or fill it by "onCreate"; or set "creates" to false, so that there is no POST.`;
    return [{ ...summarizeFaults('write_view', [fault], { object: write.view, file }), advice }];
  };
  return runReadOnly(client, { object: write.view, settings: `set local search_path = ''` }, look, () => []);
}
