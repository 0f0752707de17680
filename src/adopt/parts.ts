import { formOf } from '../check/forms.js';
import { shortened } from '../migrate/indexes.js';
import { documentsIn } from './audit-log.js';
import { type Column, type Index, type SampleRow, type Table, valuesOf } from './catalog.js';
import { alias, deletedPoints, isTextual, reasonByOrigin, rowXid, shownId, softDeleteOf } from './columns.js';
import { type FieldJson, type Fields, reasonNotToShow } from './fields.js';
import { as, comment, fromOf, indexFile, workspaceSql } from './files.js';
import { type ListDraft, leads, usableIndexes, wholeIndexes, withoutAlias } from './lists.js';
import { camelCase, singular, snakeCase, untaken } from './names.js';
import type { Subject, Survey } from './survey.js';
import { idColumn, type WorkspaceOf } from './tenant.js';

/** The rows of another table as a list in each record. */
export interface PartDraft {
  /** Column of the view. */
  readonly name: string;
  readonly member: string;
  readonly sql: string;
  /** The field of the definition. */
  readonly field: FieldJson;
  readonly open: readonly string[];
}

/**
 * Parts are correlated subqueries: they run for the rows that a page returns and no others, and not at all where only keys
 * are asked for.
 */
export function partsOf(subject: Subject, survey: Survey, { columns, fields: members }: Fields): PartDraft[] {
  const [takenColumns, takenMembers] = [new Set(columns.keys()), new Set(Object.keys(members))];
  return subject.parts.map((part) => {
    const name = untaken(shortName(part, subject.table), takenColumns);
    const key = part.foreignKeys.find(({ table }) => table === subject.table.name) as Table['foreignKeys'][number];
    const tenant = survey.tenant.columnIn(part);
    const pairs = key.columns.map((column, i) => [
      quoted(part, column),
      `${alias}.${quoted(subject.table, key.references[i] as string)}`,
    ]);
    if (tenant && !key.columns.includes(tenant.name)) pairs.push([tenant.quoted, workspaceSql(subject)]);
    const softDelete = softDeleteOf(part, 'p');
    const conditions = [
      ...pairs.map(([own, its]) => `p.${own} = ${its}`),
      ...(softDelete ? [softDelete.condition] : []),
    ];
    const isKey = (column: Column): boolean => column === tenant || key.columns.includes(column.name);
    const others = part.columns.filter((column) => !isKey(column) && column !== softDelete?.column);
    const rows = survey.partRows.get(part) ?? [];
    const documents = documentsIn(part, rows);
    const isLeft = (column: Column): boolean =>
      reasonNotToShow(column, rows, documents) !== undefined || !isReadable(column, rows);
    const leftByThemselves = others.filter(isLeft).map((column) => column.name);
    const shown = others.filter((column) => !isLeft(column) && !reasonByOrigin(column, leftByThemselves));
    const left = others.filter((column) => !shown.includes(column)).map((column) => column.name);
    const order = orderOf(part, key.columns, tenant);
    // Of a key that is the reference alone nothing is left to sort by; the types of other columns, such as json, may have no order.
    const sorted =
      order.length > 0
        ? order.map((column) => `p.${column.quoted}`)
        : shown.map((column) => `p.${column.quoted}::text`);
    const fields = shown.map(({ quoted, name, inView }) => as(`p.${quoted}`, name === 'id' ? quoted : inView));
    return {
      name,
      member: untaken(camelCase(name), takenMembers, ''),
      sql: [
        `(select coalesce(json_agg(p), '[]')`,
        `      from (select ${fields.join(', ')}`,
        `            from ${part.quoted} p`,
        `            where ${conditions.join(' and ')}${sorted.length > 0 ? `\n            order by ${sorted.join(', ')}` : ''}) p)`,
      ].join('\n'),
      field: {
        column: name,
        type: 'json',
        clean: 'json-images',
        schema: { type: 'array' },
        description: part.comment ?? `Its ${name.replaceAll('_', ' ')}.`,
      },
      open: [
        `the rows of ${part.quoted} are shown as the list ${name} of each record.`,
        ...deletedPoints(`rows of ${part.quoted}`, part),
        ...(left.length > 0
          ? [`${left.join(', ')} of ${part.quoted} ${left.length > 1 ? 'are' : 'is'} left out.`]
          : []),
      ],
    };
  });
}

/** Whether its values are no images, sealed values and other bytes: in a list nothing decodes them. */
function isReadable(column: Column, rows: readonly SampleRow[]): boolean {
  if (column.type === 'bytea') return false;
  return !isTextual(column) || ['plain', 'base64'].includes(formOf(valuesOf(rows, column.name), false).kind);
}

/** The rest of an index that leads with the reference, and the primary key: the index then gives the rows in order. */
function orderOf(part: Table, key: readonly string[], tenant: Column | undefined): Column[] {
  const isKey = (name: string | null | undefined): boolean =>
    name !== null && (name === tenant?.name || key.includes(name ?? ''));
  const index = part.indexes.find(
    ({ columns }) => isKey(columns[0]) && columns[0] !== tenant?.name && columns.length > 1,
  );
  const names = [...(index?.columns.filter((name) => !isKey(name)) ?? []), ...part.primaryKey];
  return [...new Set(names)].flatMap(
    (name) => part.columns.find((column) => column.name === name && !isKey(name)) ?? [],
  );
}

/** "werkbon_uren" of "werkbonnen" → "uren". */
function shortName(part: Table, { name }: Table): string {
  const [own, above] = [snakeCase(part.name), singular(snakeCase(name))];
  return own.startsWith(`${above}_`) ? own.slice(above.length + 1) : own;
}

function quoted({ columns }: Table, name: string): string {
  return columns.find((column) => column.name === name)?.quoted ?? name;
}

/** How a resource is synced (docs/sync.md). */
export interface SyncDraft {
  /** `sync` of the definition; absent: the resource has none. */
  readonly sync?: Readonly<Record<string, unknown>>;
  /** SQL files of the views of its parts, and of index proposals, by their paths below the folder of views. */
  readonly files: ReadonlyMap<string, string>;
  readonly open: readonly string[];
}

/** Drafts sync for a resource whose parts all name their record and themselves. */
export function syncDraft(
  view: string,
  subject: Subject,
  survey: Survey,
  { order }: ListDraft,
  { fields }: Fields,
  drafts: readonly PartDraft[],
): SyncDraft {
  const { table, log, tenant, steps, id } = subject;
  if (log) {
    const isByTime = Object.values(fields).some(({ column, type }) => column === order[0] && type === 'timestamp');
    return { sync: isByTime ? { appendOnly: {} } : {}, files: new Map(), open: [] };
  }
  const parts = subject.parts.map((part, i) => ({ name: drafts[i]?.name as string, ...keysOf(part, subject, survey) }));
  const unfit = parts.filter(({ keys }) => keys === undefined).map(({ part }) => part.quoted);
  if (unfit.length > 0)
    return {
      files: new Map(),
      open: [
        `it has no sync, because rows of ${unfit.join(', ')} do not name their record and have an id of their own: show them in views with these (docs/sync.md).`,
      ],
    };
  const views = parts.map(({ name, part, keys }) => [name, part, keys as PartKeys] as const);
  const sync = Object.fromEntries(
    views.map(([name, , keys]) => [name, { view: `records.${partView(view, name)}`, idType: shownId(keys.id).type }]),
  );
  return {
    sync: views.length === 0 ? {} : { parts: sync },
    files: new Map([
      ...views.map(
        ([name, part, keys]) => [`${partView(view, name)}.sql`, partViewFile(view, name, part, keys)] as const,
      ),
      ...(steps.length > 0 ? [] : syncIndex(partView(view, ''), table, usableIndexes(table), [tenant, id], 1)),
      ...views.flatMap(([name, part, keys]) =>
        syncIndex(partView(view, name), part, wholeIndexes(part), columnsOf(keys), 2),
      ),
    ]),
    open: [],
  };
}

/** The columns by which a part names its workspace, its record and itself. */
interface PartKeys extends WorkspaceOf {
  readonly link: Column;
  readonly id: Column;
}

function keysOf(part: Table, subject: Subject, { tenant }: Survey): { part: Table; keys: PartKeys | undefined } {
  const { table, id } = subject;
  const key = part.foreignKeys.find((each) => each.table === table.name);
  const link = part.columns.find(({ name }) => name === key?.columns[key.references.indexOf(id.name)]);
  const partId = idColumn(part, tenant, key?.columns);
  if (link === undefined || partId === undefined) return { part, keys: undefined };
  const own = tenant.columnIn(part);
  const ofRecord = { tenant: subject.tenant, steps: [{ from: link, table, to: id }, ...subject.steps] };
  return { part, keys: { ...(own ? { tenant: own, steps: [] } : ofRecord), link, id: partId } };
}

/** The columns of the index that a pass over the rows of a part relies on. */
function columnsOf({ tenant, steps, link, id }: PartKeys): Column[] {
  return [...(steps.length > 0 ? [] : [tenant]), link, id];
}

function partView(view: string, name: string): string {
  return shortened(`${view}_sync${name === '' ? '' : `_${name}`}`, 63);
}

function partViewFile(view: string, part: string, table: Table, keys: PartKeys): string {
  const { quoted } = table;
  const { link, id } = keys;
  const read = columnsOf(keys)
    .map((column) => column.quoted)
    .join(', ');
  const name = `records.${partView(view, part)}`;
  return `${comment(`The rows of ${quoted} for sync: a record of records.${view} counts as changed when ${rowXid} of one of them does.`)}
${softDeleteOf(table) ? `-- Deleted rows are here, too: the record changes when a row is deleted.\n` : ''}${comment(`A pass reads them here in one scan, in the order of the records. Relies on an index on ${quoted} (${read}).`)}
create view ${name} as
  select ${workspaceSql(keys)} as workspace_id, ${shownId(link).select} as id, ${shownId(id).select} as part_id, ${alias}.xmin as ${rowXid}
${fromOf(quoted, keys).join('\n')};
`;
}

/**
 * A proposal, unless one of the indexes leads with these columns, the last of which are the order: ids, which the view can show in
 * another form, such as a number as a text.
 */
function syncIndex(
  name: string,
  table: Table,
  indexes: readonly Index[],
  columns: readonly Column[],
  ordered: number,
): [path: string, sql: string][] {
  const fixed = columns.length - ordered;
  const keys = columns.map((column, i) => (i < fixed ? `${alias}.${column.quoted}` : shownId(column).select));
  const isPlain = keys.every((key, i) => key === `${alias}.${columns[i]?.quoted}`);
  const names = columns.map((column) => column.name);
  if (isPlain && indexes.some((index) => leads(index, names, fixed))) return [];
  const listed = columns.map(({ quoted }, i) =>
    keys[i] === `${alias}.${quoted}` ? quoted : `(${withoutAlias(keys[i] as string)})`,
  );
  const purpose = 'For sync, which reads the rows of a workspace in this order.';
  return [indexFile(name, purpose, table, `(${listed.join(', ')})`)];
}
