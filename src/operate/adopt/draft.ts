import { isNamed, toSnakeCase } from '../../base/words.js';
import { getMarkColumns, listDeletedPoints } from './columns/marks.js';
import { describeLeftOut, isLogText } from './columns/reasons.js';
import { isDocument, isPlain, isTextual } from './columns/types.js';
import { describeCrossings, planFields, type ViewColumn } from './definition/fields.js';
import { getLead, planListDraft } from './definition/lists.js';
import { draftParts, draftSync } from './definition/parts.js';
import { planWrite } from './definition/write.js';
import { planLogWrite } from './files.js';
import { describeAbove, listViewConditions } from './hiding/above.js';
import { countEmptied, formatLedger, listOddities } from './hiding/ledger.js';
import { getNames, toSingular } from './names.js';
import { type Ledger, type Point, type Subject, type Survey, sharePoint, type Table } from './schema.js';
import type { DraftFile, Points } from './sql.js';
import { alias, composePolicies, composeWhere, joinFrom, joinWorkspace, nameAs, rowXid, toPoints } from './sql.js';
import { listGuessPoints } from './tables/guesses.js';
import { describeId } from './tables/keys.js';
import { describePath } from './tables/paths.js';

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

/** Throws AdoptRefused when it is to be written and cannot be. */
export function makeDraft(subject: Subject, survey: Survey, isWritten: boolean): Draft {
  const { table, log } = subject;
  const fields = planFields(subject, survey, getMarkColumns(table));
  const names = getNames(subject, survey);
  const { view, name } = names;
  const list = planListDraft(view, name, subject, survey, fields);
  const inList = (column: ViewColumn): ViewColumn => list.order.find((each) => each.name === column.name) ?? column;
  const drafted = { ...fields, columns: fields.columns.map(inList) };
  const parts = draftParts(subject, survey, drafted);
  // A log in the order of its times is only added to.
  const ofLog = { sync: list.order[0]?.field.type === 'timestamp' ? { appendOnly: {} } : {}, files: [] };
  const sync = log ? ofLog : draftSync(view, subject, survey, parts);
  const entity = log
    ? undefined
    : survey.subjects.flatMap((each) => each.log?.entities ?? []).find((word) => isSameThing(word, table.name));
  // A version that a trigger of the app moves on every change.
  const moved = drafted.columns.find((each) => isNamed('version', each.of.name) && isPlain(each) && each.of.moved);
  const { audit } = planLogWrite(survey);
  const write = isWritten
    ? planWrite(`records.${view}`, subject, survey, drafted, entity === undefined ? undefined : audit)
    : undefined;
  const version = write?.version ?? (parts.length === 0 && !log ? moved?.name : undefined);
  const columns = [...drafted.columns, ...(write?.columns ?? []), ...parts];
  const emptied = drafted.columns.flatMap(({ of, field: { show } }) =>
    Array.isArray(show) ? [countEmptied(of.name, of.values, show as string[])] : [],
  );
  const ledger = { ...(subject.ledger as Ledger), emptied };
  const shape = { subject, survey, names, list, drafted, parts, sync, entity, write, version, columns, ledger };
  const isLogged = write !== undefined && write.write.audit !== false;
  const indexes = dropPrefixes([...list.files, ...sync.files]);
  return {
    ...{ subject, name, columns, isLogged, ledger, unindexed: list.unindexed },
    definition: makeDefinition(shape),
    files: [makeViewFile(shape), ...indexes],
  };
}

/** The definition and the view of a draft are written from these decisions. */
interface Shape extends Pick<Draft, 'subject' | 'columns' | 'ledger'> {
  readonly survey: Survey;
  readonly names: ReturnType<typeof getNames>;
  readonly list: ReturnType<typeof planListDraft>;
  readonly drafted: ReturnType<typeof planFields>;
  readonly parts: ReturnType<typeof draftParts>;
  readonly sync: { readonly sync?: object };
  readonly entity: string | undefined;
  readonly write: ReturnType<typeof planWrite> | undefined;
  readonly version: string | undefined;
}

function makeDefinition({ subject, names, list, sync, entity, write, version, columns }: Shape): Draft['definition'] {
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

function makeViewFile(shape: Shape): DraftFile {
  const { subject, names, list, sync, write, columns } = shape;
  const { view } = names;
  const { table, steps, shown } = subject;
  const conditions = listViewConditions(subject.shown);
  const items = [
    nameAs(joinWorkspace(shown.way), 'workspace_id'),
    ...columns.map((column) => nameAs(column.select, column.name)),
    ...(sync.sync ? [`${alias}.xmin as ${rowXid}`] : []),
    ...(write?.items ?? []),
  ];
  const read = [table, ...steps.map((step) => step.table), ...subject.parts];
  const hidden = read.filter(({ rowSecurity }) => rowSecurity);
  return {
    path: `${view}.sql`,
    about: [
      `${view.charAt(0).toUpperCase()}${view.slice(1).replaceAll('_', ' ')}: drafted from ${table.quoted} by \`adopt\`.`,
      `Relies on an index on ${table.quoted} (${[getLead(subject).name, ...list.order.map((column) => column.name)].join(', ')}) for lists and on the primary key for details.`,
      `Rows on the day of the draft: ${formatLedger(shape.ledger)}.`,
      ...(list.unindexed.length > 0 ? [`Filters without an index, not drafted: ${list.unindexed.join(', ')}.`] : []),
    ],
    open: toPoints([
      ...listViewPoints(shape),
      ...hidden.map(describeRowSecurity),
      ...hidden.flatMap(describeRestrictingPolicies),
    ]).map((point) => ({ rows: shape.ledger.rows, ...point })),
    sql: [
      `create view records.${view} as\n  select\n    ${items.join(',\n    ')}\n${joinFrom(table.quoted, shown.way)}${composeWhere(conditions, '\n    and ')};`,
      ...(write?.sql ?? []),
      ...composePolicies(read, ['select']),
      ...(write ? composePolicies([table], ['insert', 'update']) : []),
    ].join('\n'),
  };
}

function listViewPoints({ subject, survey, list, drafted, parts, write, ledger }: Shape): Points {
  const { table, id, tenant } = subject;
  return [
    describeId(table, id, survey.tenant),
    ...describeLeftOut(table, drafted.leftOut),
    table.rowSecurity &&
      table.rows > 0 &&
      table.columns.every(({ values }) => values.length === 0) &&
      `the sample of ${table.quoted} had no row, because its row-level security binds the role of ADMIN_URL: nothing is known of the values of ${drafted.columns.flatMap(({ of }) => (isTextual(of) || isDocument(of) ? of.name : [])).join(', ')}. Draft again as a role with BYPASSRLS, or look for secrets there.`,
    tenant.name !== survey.tenant.column &&
      sharePoint('The workspace is in a column of another name: is that the workspace of the row?', table, tenant.name),
    !tenant.notNull &&
      sharePoint('Rows with NULL in the column of the workspace belong to none and are not shown.', table, tenant.name),
    ...describePath(subject),
    ...listGuessPoints(table, survey.tenant),
    describeCrossings(subject),
    ...drafted.open,
    ...listDeletedPoints(table),
    ...describeAbove(table, subject.shown),
    ...listOddities(ledger),
    ...parts.flatMap((part) => part.open),
    ...(write?.open ?? []),
    suggestNotNull(subject, list.order[0]),
    list.order.length === 1 &&
      sharePoint('No column tells when a row was created, so lists are in the order of the id.', table),
  ];
}

/** The view has an expression in place of NULL, and an index over it; neither is needed where the app always sets the time. */
function suggestNotNull({ table, id }: Subject, first: ViewColumn | undefined): Point | false {
  if (first === undefined || first.of.notNull || id.values.length === 0) return false;
  const text =
    'Each row of a sample has the time by which its list is ordered. Set it NOT NULL and draft again, and no index over an expression is needed.';
  const isSet = first.of.values.length === id.values.length;
  return isSet && sharePoint(text, table, `alter table ${table.quoted} alter column ${first.of.quoted} set not null`);
}

/** Names restrictive policies, which hold beside the policies of the draft. */
function describeRestrictingPolicies({ quoted, policies }: Table): string[] {
  return policies
    .filter(({ restricts }) => restricts)
    .map(({ name, apps }) => {
      const to = apps ?? `the roles that the app logs in with, without the gateway's (docs/reference/views.md)`;
      return `the restrictive policy ${name} hides rows of ${quoted} from the owner of the views, and from this draft: let it hold for the app alone (alter policy ${name} on ${quoted} to ${to}).`;
    });
}

/** Explains the drafted policies: without one PostgreSQL shows the owner of the view no row, and says nothing. */
function describeRowSecurity(table: Table): Point {
  const text =
    "The tenant wall divides the rows of these tables in place of the app's row-level security: the policies of this draft hold for the gateway's roles alone.";
  return sharePoint(text, table);
}

/** Another index of the table begins with their keys. */
function dropPrefixes(files: readonly DraftFile[]): DraftFile[] {
  const keysOf = ({ sql }: DraftFile): string => sql.replace(/^.*\n/, '').replace(/\)(?: where .*)?;$/s, '');
  const rest = ({ sql }: DraftFile): string => /\)( where .*)?;$/s.exec(sql)?.[1] ?? '';
  const isServedBy = (file: DraftFile, other: DraftFile): boolean =>
    other.index !== undefined && rest(other) === rest(file) && `${keysOf(other)},`.startsWith(`${keysOf(file)},`);
  const servedBy = (file: DraftFile, i: number): DraftFile | undefined =>
    file.index &&
    files.find((other, at) => at !== i && isServedBy(file, other) && (at < i || !isServedBy(other, file)));
  return files.flatMap((file, i) => {
    if (servedBy(file, i)) return [];
    const served = files.filter((other, at) => servedBy(other, at) === file).map(({ about }) => about[0] as string);
    return [{ ...file, about: [...served, ...file.about] }];
  });
}

/** "WorkOrder", "work_order" and "werkbon" of the log, and the names of their tables. */
function isSameThing(word: string, table: string): boolean {
  const [thing, name] = [toSnakeCase(word), toSnakeCase(table)];
  return thing === name || thing === toSingular(name) || toSingular(thing) === toSingular(name);
}
