import type { Column, Index, Table } from './catalog.js';
import { alias, rowXid, shownId } from './columns.js';
import type { Fields } from './fields.js';
import { idColumn } from './ids.js';
import { leads, usableIndexes, wholeIndexes, withoutAlias } from './index-proposals.js';
import type { ListDraft } from './lists.js';
import { shortened } from './names.js';
import type { PartDraft } from './parts.js';
import { softDeleteOf } from './soft-delete.js';
import { comment } from './sql-text.js';
import type { Subject, Survey } from './survey.js';
import type { WorkspaceOf } from './tenant.js';
import { fromOf, workspaceSql } from './wall.js';

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
      ...(steps.length > 0 ? [] : indexFile(partView(view, ''), table, usableIndexes(table), [tenant, id], 1)),
      ...views.flatMap(([name, part, keys]) =>
        indexFile(partView(view, name), part, wholeIndexes(part), columnsOf(keys), 2),
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
function indexFile(
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
  const file = shortened(name, 55);
  const listed = columns.map(({ quoted }, i) =>
    keys[i] === `${alias}.${quoted}` ? quoted : `(${withoutAlias(keys[i] as string)})`,
  );
  const sql = `-- For sync, which reads the rows of a workspace in this order.
create index concurrently if not exists gateway_${file}
  on ${table.quoted} (${listed.join(', ')});
`;
  return [[`indexes/${file}.sql`, sql]];
}
