import type pg from 'pg';
import { fieldType } from '../resource/definition/field-types.js';
import { columnsOf, type Field, leaves, placeOf, type Resource, xidColumn } from '../resource/definition/resource.js';
import { codecColumns } from '../resource/projection/codec.js';
import { givenColumns, plainViewsOf, viewsOf, wallsOf } from '../resource/statements/walls.js';
import { checkSql, type FindingCode, type Item, verdict } from './finding.js';
import { byLogins, policyOn } from './policies.js';
import { inReadOnlyTransaction } from './session.js';

/** sql/check/views.sql compares it with the database. */
export interface ViewNeed {
  readonly code: FindingCode;
  readonly object: string;
  /** The operator corrects this file; null: no definition needs the views. */
  readonly file: string | null;
  readonly ok: string;
  readonly views: readonly string[];
  /** Their owner and row-level security are judged. */
  readonly plain: readonly string[];
  readonly columns: readonly NeededColumn[];
}

interface NeededColumn {
  readonly view: string;
  readonly name: string;
  /** An empty list allows any. */
  readonly types: readonly string[];
  /** It is a key of the definition, in parentheses; empty: every resource needs it. */
  readonly at: string;
  readonly privilege: 'select' | 'insert' | 'update';
  /** If true, the role must have the privilege; otherwise it must not. */
  readonly may: boolean;
}

const [policy, ofGateway] = [policyOn('%1$s', 'select', '%2$s'), byLogins].map((sql) => sql.replaceAll(/\s+/g, ' '));

/** Returns an item per need, or a single one when no view can be named. */
export function checkViews(client: pg.Client, needs: readonly ViewNeed[]): Promise<Item[]> {
  const compare = async (): Promise<Item[]> =>
    (await client.query<Item>(checkSql('views'), [JSON.stringify(needs), policy, ofGateway])).rows;
  return inReadOnlyTransaction(client, {}, compare, ({ message }) => [verdict('schema_usage', [message])]);
}

/** Compares the files of `only`, or all. `scans` reports a locked view. */
export function checkApplied(
  client: pg.Client,
  resources: readonly Resource[],
  only: string[] | null = null,
): Promise<Item[]> {
  const views = new Map(
    resources.map((resource) => [
      resource.name,
      [...plainViewsOf(resource), ...(resource.write ? [resource.write.view] : [])],
    ]),
  );
  const walls = wallsOf(resources).map(({ name, hash }) => ({ name, hash, views: views.get(name) ?? [] }));
  const compare = async (): Promise<Item[]> =>
    (await client.query<Item>(checkSql('migrated'), [JSON.stringify(walls), only])).rows;
  const bounds = { object: null, settings: 'set local quote_all_identifiers = off' }; // names as `migrate` noted them
  return inReadOnlyTransaction(client, bounds, compare, ({ message }) => [
    verdict('migrated', [`what \`migrate\` applied cannot be read: ${message}`]),
  ]);
}

export async function appliedFiles(client: pg.Client): Promise<string[]> {
  const text = `select root || '/' || name as file from gateway.applied_files where digest is not null`;
  return (await client.query<{ file: string }>(text)).rows.map(({ file }) => file);
}

export function viewNeed(resource: Resource): ViewNeed {
  const { view, sync, codecs, idType, file } = resource;
  const selected = (of: string, name: string, types: readonly string[], key: string): NeededColumn => {
    return { view: of, name, types, at: key && ` (${key})`, privilege: 'select', may: true };
  };
  const common = (of: string): NeededColumn[] => (sync ? [selected(of, xidColumn, ['xid'], '/sync')] : []);
  const used = columnsOf(resource);
  const ownColumns = [
    ...Object.entries(codecs).flatMap(([name, codec]) =>
      codecColumns(codec).flatMap((column) =>
        used.includes(column) ? [selected(view, column, [], `/codecs/${name}`)] : [],
      ),
    ),
    ...common(view),
    ...leaves(resource).map(({ field, path }) =>
      selected(view, field.column, columnTypes(field, resource), `${placeOf(path)}/column`),
    ),
  ];
  const ofParts = Object.entries(sync?.parts ?? {}).flatMap(([name, part]) => [
    ...common(part.view),
    selected(part.view, 'id', fieldType(idType).columnTypes, ''),
    selected(part.view, 'part_id', fieldType(part.idType).columnTypes, `/sync/parts/${name}/idType`),
  ]);
  const { horizonHours } = sync?.appendOnly ?? {};
  const horizon = horizonHours && ` Sync passes look back ${horizonHours} hours: no transaction must stay open longer.`;
  return {
    code: 'view',
    object: view,
    file,
    ok: `Every column is there.${horizon ?? ''}`,
    views: viewsOf(resource),
    plain: plainViewsOf(resource),
    columns: [...new Map(ownColumns.map((column) => [column.name, column])).values(), ...ofParts],
  };
}

function columnTypes({ type, pointer, codec }: Field, { codecs }: Resource): readonly string[] {
  if (codec !== undefined) return codecs[codec]?.encoding === 'bytea' ? ['bytea'] : fieldType('text').columnTypes;
  return fieldType(pointer === undefined ? type : 'json').columnTypes;
}

/** Needs exactly the write scope; an INSERT gives no column that only the app fills. */
export function writeNeeds(resource: Resource): ViewNeed[] {
  const { write, file } = resource;
  if (write === undefined) return [];
  const { view } = write;
  const fields = leaves(resource);
  const places = new Map(fields.map(({ field, path }) => [field.column, ` (${placeOf(path)}/write)`]));
  const { inserted, updated } = givenColumns(resource, write);
  const shown = columnsOf(resource);
  const rule = (privilege: 'insert' | 'update', allowed: readonly string[]) => (name: string) => {
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
        ...[...new Set([...shown, ...updated])].map(rule('update', updated)),
        ...[...new Set([...shown, ...inserted])].filter((name) => name !== 'id').map(rule('insert', inserted)),
      ],
    },
  ];
}
