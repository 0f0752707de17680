import { toSnakeCase } from '../../../base/words.js';
import { shortenName } from '../../../postgres/statement.js';
import { rowXid } from '../../../resource/definition/resource.js';
import { getDeletionColumns, listDeletedPoints, listKeptConditions } from '../columns/deletions.js';
import type { ColumnVerdicts } from '../columns/reasons.js';
import { describeLeftOut, findReasonNotToShow, isPersonal, judgeColumns, sealedReason } from '../columns/reasons.js';
import { describeDocuments, guessColumnForm, showInsideJson } from '../columns/sampled-values.js';
import { makePlainKey, showId } from '../columns/types.js';
import { chooseUntaken, getNames, toCamelCase, toSingular } from '../names.js';
import { askOnce, type Column, findColumn, type Subject, type Survey, type Table, type Tenant } from '../schema.js';
import { alias, type DraftFile, joinFrom, joinWorkspace, nameAs, type Points } from '../sql.js';
import { listDocuments } from '../tables/audit-log.js';
import { choosePartKeys, getReferenceTo, type PartKeys } from '../tables/keys.js';
import { listSteps } from '../tables/workspace-paths.js';
import type { FieldJson, Fields, ViewColumn } from './fields.js';
import { proposeIndex } from './index-drafts.js';

// The rows of a part are a list in each record. Example: of `lines` with order_id, the view of orders has the column `(select …
// json_agg(p.*) … from (select p.id, p.title from lines p where p.order_id = t.id order by p.id) p)`, without the columns that the order
// has itself. Sync finds changed lines by a view of their own, orders_sync_lines.

export interface PartDraft extends ViewColumn {
  readonly part: Table;
  readonly open: Points;
}

/** Drafts a column of the view for each part: its subquery runs for the rows of a page alone. */
export function draftParts(subject: Subject, survey: Survey, { columns }: Fields): PartDraft[] {
  const takenColumns = new Set(columns.map(({ name }) => name));
  const takenMembers = new Set(columns.map(({ member }) => member));
  return subject.parts.map((part) => {
    const name = chooseUntaken(shortenPartName(part, subject.table), takenColumns);
    const { shown, leftOut } = judgePartColumns(part, subject.table, survey.tenant);
    const isLoose = getReferenceTo(subject.table, part).columns.some(({ notNull }) => !notNull);
    const others = isLoose ? '; rows without such a record are shown nowhere' : '';
    return {
      part,
      of: subject.id,
      name,
      member: chooseUntaken(toCamelCase(name), takenMembers, ''),
      select: composePartRows(part, shown, subject, survey),
      field: {
        column: name,
        type: 'json',
        items: { type: 'json', fields: makePartFields(part, shown, survey) },
        description: part.comment ?? `Its ${name.replaceAll('_', ' ')}.`,
      },
      open: [
        askOnce(`Rows of these tables are shown as lists in the records that they belong to${others}.`, part),
        ...listDeletedPoints(part),
        ...describeDocuments(part, shown),
        ...describeLeftOut(part, leftOut),
      ],
    };
  });
}

const nameInView = (column: Column): string => (column.name === 'id' ? 'id' : column.inView);

/** Composes the list of a record in the order of the key of its rows; deleted rows are left out. */
function composePartRows(part: Table, shown: readonly Column[], subject: Subject, { tenant }: Survey): string {
  const key = getReferenceTo(subject.table, part);
  const workspace = tenant.columnIn(part);
  const conditions = key.columns.map(({ quoted }, i) => `p.${quoted} = ${alias}.${key.references[i]?.quoted}`);
  if (workspace && !key.columns.includes(workspace))
    conditions.push(`p.${workspace.quoted} = ${joinWorkspace(subject.shown.way)}`);
  conditions.push(...listKeptConditions(part, 'p'));
  const id = choosePartKeys(part, subject, subject, tenant)?.id;
  const order = choosePartOrder(part, id?.composedOf ?? [id], getPartKeys(part, subject.table, workspace));
  const orderBy = order.map(({ quoted }) => `p.${quoted}`).join(', ');
  return `(select coalesce(json_agg(p.*), '[]')
      from (select ${shown.map((column) => nameAs(`p.${column.quoted}`, nameInView(column))).join(', ')}
            from ${part.quoted} p
            where ${conditions.join(' and ')}${orderBy === '' ? '' : `\n            order by ${orderBy}`}) p)`;
}

function makePartFields(part: Table, shown: readonly Column[], survey: Survey): Record<string, FieldJson> {
  const takenNames = new Set<string>();
  const members = shown.map((column) => {
    const name = nameInView(column);
    const target = findReferenceBy(part, column, survey);
    const member = chooseUntaken(toCamelCase(name), takenNames, '');
    const json = {
      ...(member !== name && { column: name }),
      ...showInsideJson(column, column.name === 'id' || column.refers),
      ...(column.notNull ? {} : { nullable: true }),
      ...(isPersonal(column) && { personal: true }),
      ...(target && { references: getNames(target, survey).name }),
      ...(column.comment !== null && { description: column.comment }),
    };
    return [member, json] as const;
  });
  return Object.fromEntries(members);
}

/** The record above has the values of these columns itself: the workspace, and its key. */
function getPartKeys(part: Table, above: Table, tenant: Column | undefined): Column[] {
  const { columns } = getReferenceTo(above, part);
  return part.columns.filter((column) => column === tenant || columns.includes(column));
}

/** Judges the columns that a list in the record above shows. */
function judgePartColumns(part: Table, above: Table, { columnIn }: Tenant): ColumnVerdicts {
  const hidden = [...getPartKeys(part, above, columnIn(part)), ...getDeletionColumns(part)];
  const documents = listDocuments(part);
  // In a list nothing decodes sealed values and other bytes.
  const isReadable = (column: Column): boolean => column.type !== 'bytea' && guessColumnForm(column) !== 'sealed';
  return judgeColumns(
    part.columns.filter((column) => !hidden.includes(column)),
    (column) => findReasonNotToShow(column, documents) ?? (isReadable(column) ? undefined : sealedReason),
  );
}

/** Says why a list of the part would show no column; undefined if it shows one. */
export function findReasonWithoutColumns(part: Table, above: Table, tenant: Tenant): string | undefined {
  const { shown, leftOut } = judgePartColumns(part, above, tenant);
  if (shown.length > 0) return undefined;
  const reasons = leftOut.map(([reason, name]) => `${name} (${reason})`).join(', ');
  return `a list in ${above.quoted} would show no column of it${reasons && `: ${reasons}`}`;
}

function findReferenceBy(part: Table, column: Column, { subjects }: Survey): Subject | undefined {
  return subjects.find(({ table, id }) =>
    listSteps(part, [table]).some(({ from, to }) => from === column && to === id),
  );
}

function choosePartOrder(part: Table, id: readonly (Column | undefined)[], known: readonly Column[]): Column[] {
  const isKey = (column: Column): boolean => known.includes(column);
  const columnsIn = (names: readonly (string | null)[]): (Column | undefined)[] =>
    names.map((name) => findColumn(part, name ?? undefined));
  const keys = part.indexes
    .map(({ columns }) => columnsIn(columns))
    .find(([first, ...rest]) => first && isKey(first) && rest.length > 0);
  return [...new Set([...(keys ?? []), ...columnsIn(part.primaryKey), ...id])].filter(
    (column) => column !== undefined && !isKey(column),
  ) as Column[];
}

/** Shortens "werkbon_uren", a part of "werkbonnen", to "uren". */
function shortenPartName(part: Table, { name }: Table): string {
  const [own, above] = [toSnakeCase(part.name), toSingular(toSnakeCase(name))];
  return own.startsWith(`${above}_`) ? own.slice(above.length + 1) : own;
}

/** Sync finds changed parts by these views and indexes (docs/understand/sync.md). */
export interface SyncDraft {
  readonly sync: Readonly<Record<string, unknown>>;
  readonly files: readonly DraftFile[];
}

export function draftSync(view: string, subject: Subject, survey: Survey, drafts: readonly PartDraft[]): SyncDraft {
  const { table, tenant, steps, id } = subject;
  const files = steps.length > 0 ? [] : proposeSyncIndex(table, namePartView(view, ''), [tenant], [id], true);
  const sync: Record<string, object> = {};
  for (const { name, part } of drafts) {
    const keys = choosePartKeys(part, subject, subject, survey.tenant) as PartKeys; // others are no parts
    const path = namePartView(view, name);
    sync[name] = { view: `records.${path}`, idType: showId(keys.id).type };
    const fixed = keys.steps.length > 0 ? [] : [keys.tenant];
    files.push(makePartFile(view, path, part, keys));
    files.push(...proposeSyncIndex(part, path, fixed, [keys.link, keys.id], false));
  }
  return { sync: drafts.length === 0 ? {} : { parts: sync }, files };
}

function proposeSyncIndex(table: Table, name: string, fixed: Column[], ids: Column[], isOfKept: boolean): DraftFile[] {
  // The view can show an id in another form, such as a number as a text.
  const ordered = ids.map((of) => ({ of, select: showId(of).select }));
  const purpose = 'For sync, which reads the rows of a workspace in this order.';
  return proposeIndex(table, name, purpose, { fixed: fixed.map(makePlainKey), ordered, isOfKept });
}

function namePartView(view: string, name: string): string {
  return shortenName(`${view}_sync${name === '' ? '' : `_${name}`}`);
}

function makePartFile(view: string, name: string, part: Table, keys: PartKeys): DraftFile {
  const { link, id, tenant, steps } = keys;
  const readColumns = [...(steps.length > 0 ? [] : [tenant]), link, id].map((column) => column.quoted).join(', ');
  return {
    path: `${name}.sql`,
    about: [
      `The rows of ${part.quoted} for sync: a record of records.${view} counts as changed when ${rowXid} of one of them does.`,
      ...(listKeptConditions(part).length > 0
        ? ['Deleted rows are here, too: the record changes when a row is deleted.']
        : []),
      `A pass reads them here in one scan, in the order of the records. Relies on an index on ${part.quoted} (${readColumns}).`,
    ],
    sql: `create view records.${name} as
  select ${joinWorkspace(keys)} as workspace_id, ${showId(link).select} as id, ${showId(id).select} as part_id, ${alias}.xmin as ${rowXid}
${joinFrom(part.quoted, keys)};`,
  };
}
