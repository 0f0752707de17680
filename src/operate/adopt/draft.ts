import { isNamed, toSnakeCase } from '../../base/words.js';
import { rowXid } from '../../resource/definition/resource.js';
import { getDeletionColumns, listDeletedPoints } from './columns/deletions.js';
import { describeLeftOut, isLogText } from './columns/reasons.js';
import { isDocument, isPlain, isTextual } from './columns/types.js';
import { describeCrossings, planFields, type ViewColumn } from './definition/fields.js';
import { getLead, planListDraft } from './definition/lists.js';
import { draftParts, draftSync } from './definition/parts.js';
import { planWrite } from './definition/write-draft.js';
import { planLogWrite } from './files.js';
import { describeAbove, listViewConditions } from './hiding/above.js';
import { countEmptied, formatLedger, listOddities } from './hiding/ledger.js';
import { getNames, toSingular } from './names.js';
import { askOnce, type Emptied, type Ledger, type Point, type Subject, type Survey, type Table } from './schema.js';
import type { DraftFile, Points } from './sql.js';
import { alias, composePolicies, composeWhere, joinFrom, joinWorkspace, nameAs, toPoints } from './sql.js';
import { describeGuesses } from './tables/guesses.js';
import { describeId } from './tables/keys.js';
import { describePath } from './tables/workspace-paths.js';

export interface Draft {
  readonly subject: Subject;
  readonly name: string;
  readonly columns: readonly ViewColumn[];
  readonly definition: Readonly<Record<string, unknown>>;
  /** The view, proposals of indexes, and views of the parts. */
  readonly files: readonly DraftFile[];
  /** Writes to the resource are entries of the app's audit log. */
  readonly isLogged: boolean;
  readonly ledger: Ledger;
  /** Filters that are not drafted, because each needs an index. */
  readonly unindexed: readonly string[];
}

/** Throws AdoptRefused when the table is to be written and cannot be. */
export function makeDraft(subject: Subject, survey: Survey, isWritten: boolean): Draft {
  const plan = planDraft(subject, survey, isWritten);
  const { names, columns, ledger, list, sync, write } = plan;
  return {
    subject,
    name: names.name,
    columns,
    isLogged: write !== undefined && write.write.audit !== false,
    ledger,
    unindexed: list.unindexed,
    definition: makeDefinition(plan),
    files: [makeViewFile(plan), ...dropPrefixes([...list.files, ...sync.files])],
  };
}

type DraftPlan = ReturnType<typeof planDraft>;

/** Decides what the definition and the view have in common. */
function planDraft(subject: Subject, survey: Survey, isWritten: boolean) {
  const { table, log } = subject;
  const names = getNames(subject, survey);
  const fields = planFields(subject, survey, getDeletionColumns(table));
  const list = planListDraft(names, subject, survey, fields);
  // The order of the list can show a column in another form, which never is NULL.
  const inList = (column: ViewColumn): ViewColumn => list.order.find(({ name }) => name === column.name) ?? column;
  const drafted = { ...fields, columns: fields.columns.map(inList) };
  const parts = draftParts(subject, survey, drafted);
  const sync = log ? draftLogSync(list.order) : draftSync(names.view, subject, survey, parts);
  const entity = log ? undefined : findEntity(table, survey);
  const audit = entity === undefined ? undefined : planLogWrite(survey)?.audit;
  const write = isWritten ? planWrite(`records.${names.view}`, subject, survey, drafted, audit) : undefined;
  const version = write?.version ?? (parts.length === 0 && !log ? findMovedVersion(drafted.columns)?.name : undefined);
  const columns = [...drafted.columns, ...(write?.columns ?? []), ...parts];
  const ledger = { ...(subject.ledger as Ledger), emptied: listEmptied(drafted.columns) };
  return { subject, survey, names, list, drafted, parts, sync, entity, write, version, columns, ledger };
}

/** Rows of a log are never changed, so a log in the order of its times is synced from the last time on. */
function draftLogSync(order: readonly ViewColumn[]): ReturnType<typeof draftSync> {
  return { sync: order[0]?.field.type === 'timestamp' ? { appendOnly: {} } : {}, files: [] };
}

/** Finds the word by which the audit log names the records of the table. */
function findEntity(table: Table, { subjects }: Survey): string | undefined {
  return subjects.flatMap(({ log }) => log?.entities ?? []).find((word) => isSameThing(word, table.name));
}

/** Finds a version that a trigger of the app moves on every change. */
function findMovedVersion(columns: readonly ViewColumn[]): ViewColumn | undefined {
  return columns.find((column) => isNamed('version', column.of.name) && isPlain(column) && column.of.isMoved);
}

function listEmptied(columns: readonly ViewColumn[]): Emptied[] {
  return columns.flatMap(({ of, field: { show } }) =>
    Array.isArray(show) ? [countEmptied(of.name, of.values, show as string[])] : [],
  );
}

function makeDefinition(plan: DraftPlan): Draft['definition'] {
  const { subject, names, list, sync, entity, write, version, columns } = plan;
  const { table, log } = subject;
  const { view, name, record } = names;
  return {
    name,
    record,
    description: table.comment ?? `The ${name.replaceAll('-', ' ')} of the workspace.`,
    view: `records.${view}`,
    ...(table.name !== name && /^[a-z_][a-z0-9_]*$/.test(table.name) && { table: table.name }),
    detail: log === undefined,
    ...(version !== undefined && { version }),
    order: list.order.map((column) => column.name),
    ...(sync.sync && { sync: sync.sync }),
    filters: list.filters,
    ...(entity !== undefined && { auditEntity: entity }),
    ...(write && { write: write.write }),
    fields: Object.fromEntries(
      columns.map(({ of, member, field }) => {
        const rule = write?.rules.get(member);
        const isLogged = entity !== undefined && field.type === 'text' && !field.codec && isLogText(of);
        return [member, { ...field, ...(isLogged && { log: 'text' }), ...(rule && { write: rule }) }];
      }),
    ),
  };
}

function makeViewFile(plan: DraftPlan): DraftFile {
  const { subject, names, list, sync, write, columns } = plan;
  const { view } = names;
  const { table, steps, shown } = subject;
  const title = `${view.charAt(0).toUpperCase()}${view.slice(1).replaceAll('_', ' ')}`;
  const keys = [getLead(subject), ...list.order].map((column) => column.name).join(', ');
  const where = composeWhere(listViewConditions(shown), '\n    and ');
  const items = [
    nameAs(joinWorkspace(shown.way), 'workspace_id'),
    ...columns.map((column) => nameAs(column.select, column.name)),
    ...(sync.sync ? [`${alias}.xmin as ${rowXid}`] : []),
    ...(write?.items ?? []),
  ];
  const read = [table, ...steps.map((step) => step.table), ...subject.parts];
  const hidden = read.filter(({ hasRowSecurity }) => hasRowSecurity);
  return {
    path: `${view}.sql`,
    about: [
      `${title}: drafted from ${table.quoted} by \`adopt\`.`,
      `Relies on an index on ${table.quoted} (${keys}) for lists and on the primary key for details.`,
      `Rows on the day of the draft: ${formatLedger(plan.ledger)}.`,
      ...(list.unindexed.length > 0 ? [`Filters without an index, not drafted: ${list.unindexed.join(', ')}.`] : []),
    ],
    open: toPoints([
      ...listViewPoints(plan),
      ...hidden.map(describeRowSecurity),
      ...hidden.flatMap(describeRestrictingPolicies),
    ]).map((point) => ({ rows: plan.ledger.rows, ...point })),
    sql: [
      `create view records.${view} as\n  select\n    ${items.join(',\n    ')}\n${joinFrom(table.quoted, shown.way)}${where};`,
      ...(write?.sql ?? []),
      ...composePolicies(read, ['select']),
      ...(write ? composePolicies([table], ['insert', 'update']) : []),
    ].join('\n'),
  };
}

function listViewPoints({ subject, survey, list, drafted, parts, write, ledger }: DraftPlan): Points {
  const { table, id, tenant } = subject;
  return [
    describeId(table, id, survey.tenant),
    ...describeLeftOut(table, drafted.leftOut),
    describeEmptySample(table, drafted.columns),
    tenant.name !== survey.tenant.column &&
      askOnce('The workspace is in a column of another name: is that the workspace of the row?', table, tenant.name),
    !tenant.notNull &&
      askOnce('Rows with NULL in the column of the workspace belong to none and are not shown.', table, tenant.name),
    ...describePath(subject),
    describeGuesses(table, survey.tenant),
    describeCrossings(subject),
    ...drafted.open,
    ...listDeletedPoints(table),
    describeAbove(table, subject.shown),
    ...listOddities(ledger),
    ...parts.flatMap((part) => part.open),
    ...(write?.open ?? []),
    suggestNotNull(subject, list.order[0]),
    list.order.length === 1 &&
      askOnce('No column tells when a row was created, so lists are in the order of the id.', table),
  ];
}

function describeEmptySample({ quoted, rows, hasRowSecurity, columns }: Table, drafted: readonly ViewColumn[]) {
  if (!hasRowSecurity || rows === 0 || columns.some(({ values }) => values.length > 0)) return false;
  const names = drafted.flatMap(({ of }) => (isTextual(of) || isDocument(of) ? of.name : [])).join(', ');
  return `the sample of ${quoted} had no row, because its row-level security binds the role of ADMIN_URL: nothing is known of the values of ${names}. Draft again as a role with BYPASSRLS, or look for secrets there.`;
}

/** Where the time can be NULL, the view orders by an expression that needs an index over it: NOT NULL saves both. */
function suggestNotNull({ table, id }: Subject, first: ViewColumn | undefined): Point | false {
  if (first === undefined || first.of.notNull || id.values.length === 0) return false;
  const text =
    'Each row of a sample has the time by which its list is ordered. Set it NOT NULL and draft again, and no index over an expression is needed.';
  const isSet = first.of.values.length === id.values.length;
  return isSet && askOnce(text, table, `alter table ${table.quoted} alter column ${first.of.quoted} set not null`);
}

/** Names restrictive policies, which hold beside the policies of the draft. */
function describeRestrictingPolicies({ quoted, policies }: Table): string[] {
  return policies
    .filter(({ isRestrictive }) => isRestrictive)
    .map(({ name, apps }) => {
      const to = apps ?? `the roles that the app logs in with, without the gateway's (docs/reference/views.md)`;
      return `the restrictive policy ${name} hides rows of ${quoted} from the owner of the views, and from this draft: let it hold for the app alone (alter policy ${name} on ${quoted} to ${to}).`;
    });
}

/** Explains the drafted policies: without one PostgreSQL shows the owner of the view no row, and says nothing. */
function describeRowSecurity(table: Table): Point {
  const text =
    "The tenant wall divides the rows of these tables in place of the app's row-level security: the policies of this draft hold for the gateway's roles alone.";
  return askOnce(text, table);
}

/** Drops each index whose keys begin another index of the table: the longer one serves both, and its comments name both uses. */
function dropPrefixes(files: readonly DraftFile[]): DraftFile[] {
  const isServedBy = ({ index: short }: DraftFile, { index: long }: DraftFile): boolean =>
    short?.table === long?.table &&
    short?.where === long?.where &&
    short?.keys.every((key, i) => long?.keys[i] === key) === true;
  // Of two indexes with the same keys the first stays.
  const servedBy = (file: DraftFile, i: number): DraftFile | undefined =>
    files.find((other, at) => at !== i && isServedBy(file, other) && (at < i || !isServedBy(other, file)));
  return files.flatMap((file, i) => {
    if (servedBy(file, i)) return [];
    const served = files.filter((other, at) => servedBy(other, at) === file).map(({ about }) => about[0] as string);
    return [{ ...file, about: [...served, ...file.about] }];
  });
}

/** Matches "WorkOrder", "work_order" and "werkbon", as a log names records, with the names of their tables. */
function isSameThing(word: string, table: string): boolean {
  const [thing, name] = [toSnakeCase(word), toSnakeCase(table)];
  return thing === name || thing === toSingular(name) || toSingular(thing) === toSingular(name);
}
