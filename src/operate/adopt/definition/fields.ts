import type pg from 'pg';
import { openPrefix } from '../../../resource/definition/resource.js';
import type { ColumnVerdicts } from '../columns/reasons.js';
import { findReasonNotToShow, findReasonToLeaveOut, isPersonal, judgeColumns } from '../columns/reasons.js';
import { areRandom, describeDocuments, guessColumnForm, showInsideJson } from '../columns/sampled-values.js';
import type { IndexKey, ShownColumn } from '../columns/types.js';
import { composeMoment, isMoments, isTextual, showColumn, showId } from '../columns/types.js';
import { chooseUntaken, getNames, toCamelCase } from '../names.js';
import { askAbout, askOnce, type Column, listKeysTo, type Point, type Subject, type Survey } from '../schema.js';
import { drawSample, joinFrom, joinWorkspace, type Points, sealedCodec } from '../sql.js';

// The public face of definition/: this file plans the fields, lists.ts the order and the filters, parts.ts the lists inside a record, and
// write-draft.ts what clients write. Example: a `customer_id` that refers to the resource customers becomes the field customerId, of the
// type bigint, with "references": "customers"; `created_at` becomes createdAt, a timestamp.

export type FieldJson = Readonly<Record<string, unknown>>;

export interface ViewColumn extends IndexKey {
  readonly name: string;
  readonly member: string;
  readonly field: FieldJson;
}

export interface Fields extends Pick<ColumnVerdicts, 'leftOut'> {
  /** The id comes first. */
  readonly columns: readonly ViewColumn[];
  readonly open: Points;
}

export function planFields(subject: Subject, survey: Survey, skipped: readonly (Column | undefined)[]): Fields {
  const { table, id, tenant, log } = subject;
  const others = table.columns.filter((column) => column !== id && column !== tenant && !skipped.includes(column));
  const { shown, leftOut } = judgeColumns(others, (column) => findReason(column, subject, survey));
  const rules = [id, ...shown].map((column) => [column, chooseRule(column, subject, survey)] as const);
  const members = new Set(['decodeErrors', 'syncVersion']); // the gateway's own
  const columns = rules.map(([column, rule]) => makeColumn(column, rule, column === id, members));
  const documents = shown.filter((column) => column !== log?.diff);
  const open = [
    ...rules.map(([, rule]) => rule.open),
    ...describeDocuments(table, documents),
    describeRandomIds(subject, survey, shown),
  ];
  return { columns, leftOut, open };
}

function makeColumn(of: Column, rule: Rule, isId: boolean, members: Set<string>): ViewColumn {
  const { type, select, json, name = of.inView, member = toCamelCase(name) } = rule;
  const isPlainText = !isId && (type === 'text' || type === 'enum') && json?.codec === undefined;
  const field = {
    column: name,
    type,
    ...(!of.notNull && { nullable: true }),
    ...(!isId && isPersonal(of) && { personal: true }),
    description: of.comment ?? `The ${name}.`,
    ...json,
    ...(isPlainText && listValues(of)),
  };
  return { of, name, select, member: chooseUntaken(member, members, ''), field };
}

/** Warns of texts that look random, although neither name nor form says that they are secrets; a text that other tables name is an id. */
function describeRandomIds({ table, log }: Subject, { tables }: Survey, columns: readonly Column[]): Point | false {
  const namedColumns = listKeysTo(table, tables).flatMap(({ key }) => key.references);
  const isText = (column: Column): boolean => isTextual(column) && !column.isArray && column !== log?.entityId;
  const names = columns
    .filter((column) => isText(column) && !column.isWanted && !column.refers && !isPersonal(column))
    .filter((column) => !namedColumns.includes(column.name) && guessColumnForm(column) === 'plain')
    .filter(({ values }) => areRandom(values))
    .map(({ name }) => name);
  const text =
    'Texts look random, each is there once, and no other table names them: leave out those that open or sign something.';
  return askAbout(text, table, names);
}

function listValues({ labels, isArray }: Column): { values?: readonly string[] } {
  const areFit = labels.every(({ length }) => length > 0 && length <= 200);
  return labels.length > 0 && labels.length <= 200 && areFit && !isArray ? { values: labels } : {};
}

function findReason(column: Column, subject: Subject, survey: Survey): string | undefined {
  const { log, documents } = subject;
  if (column !== log?.entityId && findReferenceOf(subject, survey, column)?.isById) return undefined;
  const isOfLog = column === log?.entityId || column === log?.diff || column === log?.entity;
  return isOfLog ? findReasonToLeaveOut(column) : findReasonNotToShow(column, documents);
}

interface Rule extends ShownColumn {
  readonly name?: string;
  readonly member?: string;
  readonly json?: FieldJson;
  readonly open?: string | Point;
}

function chooseRule(column: Column, subject: Subject, survey: Survey): Rule {
  const { id, log } = subject;
  const [plain, asId] = [showColumn(column), showId(column)];
  if (column === id) return { ...asId, name: 'id', json: { nullable: undefined, description: 'Opaque identifier.' } };
  if (column === log?.entityId) return { ...asId, member: 'entityId' };
  const reference = findReferenceOf(subject, survey, column);
  if (reference?.isById && !subject.crossings.has(column.name))
    return { ...asId, json: { references: getNames(reference.target, survey).name } };
  if (column === log?.entity) return { ...plain, member: 'entity' };
  if (column === log?.diff) return { ...plain, json: describeDiff(subject) };
  if (reference || column.refers) return asId;
  if (plain.type === 'json') {
    const { type, ...inside } = showInsideJson(column, false);
    return { ...plain, json: inside };
  }
  if (column.type === 'timestamp without time zone') {
    const text =
      "Times without a zone are taken as UTC: name the app's zone in the view if it is another one. No index of the app on such a column serves a list.";
    return { ...plain, open: askOnce(text, subject.table, column.name) };
  }
  const form = guessColumnForm(column);
  if (form === 'sealed') {
    const description = `${openPrefix}it looks sealed by the codec ${sealedCodec}: may clients see it in plain?`;
    return { ...plain, json: { codec: sealedCodec, nullable: true, description } };
  }
  if (form === 'base64') {
    const description = `${openPrefix}its values look like base64 of texts; if they are not, remove codec.`;
    return { ...plain, json: { codec: 'base64', description } };
  }
  if (isTextual(column) && isMoments(column.values)) {
    const open = `${column.name} holds times as texts: a value of another form than 2026-01-31T12:00:00Z would fail the whole page.`;
    return { type: 'timestamp', select: composeMoment(plain.select), open };
  }
  return plain;
}

/** Finds the resource to which a foreign key leads from the column, alone or together with the column of the workspace. */
export function findReferenceOf(
  { table, tenant }: Subject,
  { subjects }: Pick<Survey, 'subjects'>,
  column: Column,
): { target: Subject; isById: boolean } | undefined {
  const keys = table.foreignKeys.flatMap(({ columns, table: to, references }) => {
    const target = subjects.find((subject) => subject.table.name === to);
    const isOwn = columns.includes(column.name) && columns.every((name) => [column.name, tenant.name].includes(name));
    // If it leads to another key than the id, nothing shows whether the record is of the same workspace.
    const isById = references[columns.indexOf(column.name)] === target?.id.name;
    return target && isOwn ? [{ target, isById }] : [];
  });
  return keys.find(({ isById }) => isById) ?? keys[0];
}

function describeDiff({ log }: Subject): FieldJson {
  const { shape } = log ?? {};
  const isUsual = shape?.field === 'field' && shape.old === 'old' && shape.new === 'new';
  return {
    clean: 'audit-diff',
    ...(shape && !isUsual && { diff: shape }),
    description: shape
      ? 'Fields that changed, with old and new value.'
      : `${openPrefix}no sampled value has a shape that the gateway reads, so no change is shown; describe it with the key diff.`,
  };
}

/** One of so many rows with a reference to another workspace is enough for a point; `check` finds rarer ones. */
const crossingRowsMax = 1000;

/** Finds columns that refer to records of another workspace, such as an author who moved: a client cannot read such a record. */
export async function countCrossings(
  client: pg.Client,
  subject: Subject,
  survey: Pick<Survey, 'subjects'>,
): Promise<Set<string>> {
  const { table } = subject;
  const references = table.columns.flatMap((column) => {
    const reference = findReferenceOf(subject, survey, column);
    return reference?.isById && !reference.target.id.composedOf ? [{ column, target: reference.target }] : [];
  });
  if (references.length === 0) return new Set();
  const sampledRows = `(select * from ${drawSample(table, crossingRowsMax)} limit ${crossingRowsMax})`;
  const others = references.map(
    ({ target }, i) =>
      // An id can be unique within its workspace alone: then none of the records with it may be of the workspace of the row.
      `coalesce(bool_or((select bool_and(${joinWorkspace(target)}::text <> s.own) ${joinFrom(target.table.quoted, target)}
        where t.${target.id.quoted} = s.r${i})), false)`,
  );
  const { rows } = await client.query<boolean[]>({
    text: `select ${others.join(', ')} from (select ${joinWorkspace(subject)}::text as own,
      ${references.map(({ column }, i) => `t.${column.quoted} as r${i}`).join(', ')} ${joinFrom(sampledRows, subject)}) s`,
    rowMode: 'array',
  });
  return new Set(references.flatMap(({ column }, i) => (rows[0]?.[i] ? [column.name] : [])));
}

export function describeCrossings({ table, crossings }: Subject): Point | false {
  const text =
    'A row refers to a record of another workspace: is its workspace the right one? The field has no "references", because clients cannot read such a record.';
  return askAbout(text, table, [...crossings]);
}
