import { shortened } from '../migrate/indexes.js';
import { documentsIn } from './audit-log.js';
import { alias, formOfColumn, judged, leftPoints, reasonNotToShow, rowXid, sealed, shownId } from './columns.js';
import { deletedPoints, keptConditions, markColumns } from './deletion.js';
import type { Fields, ViewColumn } from './fields.js';
import { plainKey, proposedIndex } from './indexes.js';
import { camelCase, singular, snakeCase, untaken } from './names.js';
import { type Column, columnOf, type Subject, type Survey, type Table, type WorkspaceOf } from './schema.js';
import { as, fromOf, type Points, type SqlFile, workspaceSql } from './sql.js';
import { idColumn } from './tenant.js';

/** The rows of another table as a list in each record; it is made of the record's id. */
export interface PartDraft extends ViewColumn {
  readonly part: Table;
  readonly open: Points;
}

/**
 * Parts are correlated subqueries: they run for the rows that a page returns and no others, and not at all where only keys
 * are asked for.
 */
export function partsOf(subject: Subject, survey: Survey, { columns }: Fields): PartDraft[] {
  const takenColumns = new Set(columns.map(({ name }) => name));
  const takenMembers = new Set(columns.map(({ member }) => member));
  return subject.parts.map((part) => {
    const name = untaken(shortName(part, subject.table), takenColumns);
    const key = keyOf(part, subject);
    const tenant = survey.tenant.columnIn(part);
    const conditions = key.columns.map(
      (column, i) =>
        `p.${columnOf(part, column)?.quoted} = ${alias}.${columnOf(subject.table, key.references[i])?.quoted}`,
    );
    if (tenant && !key.columns.includes(tenant.name)) conditions.push(`p.${tenant.quoted} = ${workspaceSql(subject)}`);
    conditions.push(...keptConditions(part, 'p'));
    const isKey = (column: Column): boolean => column === tenant || key.columns.includes(column.name);
    const marks = markColumns(part);
    const others = part.columns.filter((column) => !isKey(column) && !marks.includes(column));
    // In a list nothing decodes sealed values and other bytes.
    const isReadable = (column: Column): boolean => column.type !== 'bytea' && formOfColumn(column).kind !== 'sealed';
    const { shown, leftOut } = judged(
      others,
      (column) => reasonNotToShow(column, documentsIn(part)) ?? (isReadable(column) ? undefined : sealed),
    );
    const order = orderOf(part, isKey).map(({ quoted }) => `p.${quoted}`);
    // Of a key that is the reference alone nothing is left to sort by; the types of other columns, such as json, may have no order.
    const sorted = order.length > 0 ? order : shown.map(({ quoted }) => `p.${quoted}::text`);
    const fields = shown.map(({ quoted, name, inView }) => as(`p.${quoted}`, name === 'id' ? quoted : inView));
    return {
      part,
      of: subject.id,
      name,
      member: untaken(camelCase(name), takenMembers, ''),
      select: `(select coalesce(json_agg(p.*), '[]')
      from (select ${fields.join(', ')}
            from ${part.quoted} p
            where ${conditions.join(' and ')}${sorted.length > 0 ? `\n            order by ${sorted.join(', ')}` : ''}) p)`,
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
        ...leftPoints(` of ${part.quoted}`, leftOut),
      ],
    };
  });
}

/** The reference by which the rows of a part name their record. */
function keyOf(part: Table, { table }: Subject): Table['foreignKeys'][number] {
  return part.foreignKeys.find((key) => key.table === table.name) as Table['foreignKeys'][number];
}

/** The rest of an index that leads with the reference, and the primary key: the index then gives the rows in order. */
function orderOf(part: Table, isKey: (column: Column) => boolean): Column[] {
  const columnsIn = (names: readonly (string | null)[]): (Column | undefined)[] =>
    names.map((name) => columnOf(part, name ?? undefined));
  const keys = part.indexes
    .map(({ columns }) => columnsIn(columns))
    .find(([first, ...rest]) => first && isKey(first) && rest.length > 0);
  return [...new Set([...(keys ?? []), ...columnsIn(part.primaryKey)])].filter(
    (column) => column !== undefined && !isKey(column),
  ) as Column[];
}

/** "werkbon_uren" of "werkbonnen" → "uren". */
function shortName(part: Table, { name }: Table): string {
  const [own, above] = [snakeCase(part.name), singular(snakeCase(name))];
  return own.startsWith(`${above}_`) ? own.slice(above.length + 1) : own;
}

/** How a resource is synced (docs/understand/sync.md). */
export interface SyncDraft {
  /** `sync` of the definition; absent: the resource has none. */
  readonly sync?: Readonly<Record<string, unknown>>;
  /** Views of its parts, and proposals of indexes. */
  readonly files: readonly SqlFile[];
  readonly open: Points;
}

/** Drafts sync for a resource whose parts all name their record and themselves. */
export function syncOf(view: string, subject: Subject, survey: Survey, drafts: readonly PartDraft[]): SyncDraft {
  const { table, tenant, steps, id } = subject;
  const parts = drafts.map(({ name, part }) => ({ name, part, keys: partKeys(part, subject, survey) }));
  const unfit = parts.filter(({ keys }) => keys === undefined).map(({ part }) => part.quoted);
  if (unfit.length > 0)
    return {
      files: [],
      open: [
        `it has no sync, because rows of ${unfit.join(', ')} do not name their record and have an id of their own: show them in views with these (docs/understand/sync.md).`,
      ],
    };
  const index = (name: string, of: Table, fixed: readonly Column[], ordered: readonly Column[], isOfKept: boolean) =>
    proposedIndex(
      of,
      name,
      'For sync, which reads the rows of a workspace in this order.',
      // Ids, which the view can show in another form, such as a number as a text.
      [...fixed.map(plainKey), ...ordered.map((column) => ({ of: column, select: shownId(column).select }))],
      fixed.length,
      isOfKept,
    );
  const files = steps.length > 0 ? [] : index(partView(view, ''), table, [tenant], [id], true);
  const sync: Record<string, object> = {};
  for (const { name, part, keys } of parts) {
    if (keys === undefined) continue;
    const path = partView(view, name);
    sync[name] = { view: `records.${path}`, idType: shownId(keys.id).type };
    const fixed = keys.steps.length > 0 ? [] : [keys.tenant];
    files.push(partFile(view, path, part, keys), ...index(path, part, fixed, [keys.link, keys.id], false));
  }
  return { sync: parts.length === 0 ? {} : { parts: sync }, files, open: [] };
}

/** The columns by which a part names its workspace, its record and itself. */
interface PartKeys extends WorkspaceOf {
  readonly link: Column;
  readonly id: Column;
}

function partKeys(part: Table, subject: Subject, { tenant }: Survey): PartKeys | undefined {
  const { table, id } = subject;
  const key = keyOf(part, subject);
  const link = columnOf(part, key.columns[key.references.indexOf(id.name)]);
  const partId = idColumn(part, tenant, key.columns);
  if (link === undefined || partId === undefined) return undefined;
  const own = tenant.columnIn(part);
  const ofRecord = { tenant: subject.tenant, steps: [{ from: link, table, to: id }, ...subject.steps] };
  return { ...(own ? { tenant: own, steps: [] } : ofRecord), link, id: partId };
}

function partView(view: string, name: string): string {
  return shortened(`${view}_sync${name === '' ? '' : `_${name}`}`, 63);
}

function partFile(view: string, name: string, part: Table, keys: PartKeys): SqlFile {
  const { link, id, tenant, steps } = keys;
  const read = [...(steps.length > 0 ? [] : [tenant]), link, id].map((column) => column.quoted).join(', ');
  return {
    path: `${name}.sql`,
    about: [
      `The rows of ${part.quoted} for sync: a record of records.${view} counts as changed when ${rowXid} of one of them does.`,
      ...(keptConditions(part).length > 0
        ? ['Deleted rows are here, too: the record changes when a row is deleted.']
        : []),
      `A pass reads them here in one scan, in the order of the records. Relies on an index on ${part.quoted} (${read}).`,
    ],
    sql: `create view records.${name} as
  select ${workspaceSql(keys)} as workspace_id, ${shownId(link).select} as id, ${shownId(id).select} as part_id, ${alias}.xmin as ${rowXid}
${fromOf(part.quoted, keys)};`,
  };
}
