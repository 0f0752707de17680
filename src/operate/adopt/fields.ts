import { areRandom } from '../../doctor/thorough/forms.js';
import {
  documentPoints,
  formOfColumn,
  insideJson,
  isMoments,
  isPersonal,
  isTextual,
  type Judged,
  judged,
  momentOf,
  preset,
  reasonNotToShow,
  reasonToLeaveOut,
  type ShownColumn,
  shown,
  shownId,
} from './columns.js';
import type { IndexKey } from './indexes.js';
import { camelCase, namesOf, untaken } from './names.js';
import { type Column, type Point, type Subject, type Survey, sharedPoint } from './schema.js';

export type FieldJson = Readonly<Record<string, unknown>>;

export interface ViewColumn extends IndexKey {
  readonly name: string;
  readonly member: string;
  readonly field: FieldJson;
}

/** The id comes first. */
export interface Fields extends Pick<Judged, 'leftOut'> {
  readonly columns: readonly ViewColumn[];
  readonly open: readonly (string | Point)[];
}

export function fieldsOf(subject: Subject, survey: Survey, skipped: readonly (Column | undefined)[]): Fields {
  const { table, id, tenant } = subject;
  const others = table.columns.filter((column) => column !== id && column !== tenant && !skipped.includes(column));
  const { shown: fit, leftOut } = judged(others, (column) => reasonOf(column, subject, survey));
  const members = new Set(['decodeErrors', 'syncVersion']); // the gateway's own
  const open: (string | Point)[] = [];
  const columns = [id, ...fit].map((source): ViewColumn => {
    const {
      select,
      name = source.inView,
      member = camelCase(name),
      type,
      json,
      open: point,
    } = ruleOf(source, subject, survey);
    if (point !== undefined) open.push(point);
    const isPlainText = (type === 'text' || type === 'enum') && json?.codec === undefined && source !== id;
    const nullable = source.notNull ? {} : { nullable: true };
    const field = {
      column: name,
      type,
      ...nullable,
      ...(source !== id && isPersonal(source) && { personal: true }),
      description: source.comment ?? `The ${name}.`,
      ...json,
      ...(isPlainText && valuesOf(source)),
    };
    return { of: source, name, select, member: untaken(member, members, ''), field };
  });
  open.push(
    ...documentPoints(
      table,
      fit.filter((of) => of !== subject.log?.diff),
    ),
    ...randomPoint(subject, survey, fit),
  );
  return { columns, leftOut, open };
}

/** Warns of random values that no name and no form tells to be secrets; what other tables name is an id. */
function randomPoint({ table, log }: Subject, { tables }: Survey, columns: readonly Column[]): Point[] {
  const isNamedBy = ({ name }: Column): boolean =>
    tables.some(({ foreignKeys }) =>
      foreignKeys.some((key) => key.table === table.name && key.references.includes(name)),
    );
  const names = columns
    .filter(
      (column) =>
        isTextual(column) && !column.isArray && !column.isWanted && !isPersonal(column) && column !== log?.entityId,
    )
    .filter(
      (column) =>
        !column.refers && !isNamedBy(column) && formOfColumn(column).kind === 'plain' && areRandom(column.values),
    )
    .map(({ name }) => name)
    .join(', ');
  const all =
    'Texts look random, each is there once, and no other table names them: leave out those that open or sign something.';
  return names === '' ? [] : [sharedPoint(all, table, names)];
}

/** Takes the labels of its type or of a CHECK. */
function valuesOf({ labels, isArray }: Column): { values?: readonly string[] } {
  const areFit = labels.every(({ length }) => length > 0 && length <= 200);
  return labels.length > 0 && labels.length <= 200 && areFit && !isArray ? { values: labels } : {};
}

function reasonOf(column: Column, subject: Subject, survey: Survey): string | undefined {
  const { log, documents } = subject;
  if (column !== log?.entityId && referenceOf(subject, survey, column)?.isById) return undefined;
  const isOfLog = column === log?.entityId || column === log?.diff || column === log?.entity;
  return isOfLog ? reasonToLeaveOut(column) : reasonNotToShow(column, documents);
}

interface Rule extends ShownColumn {
  readonly name?: string;
  readonly member?: string;
  readonly json?: FieldJson;
  readonly open?: string | Point;
}

function ruleOf(column: Column, subject: Subject, survey: Survey): Rule {
  const { id, log } = subject;
  const [plain, asId] = [shown(column), shownId(column)];
  if (column === id) return { ...asId, name: 'id', json: { nullable: undefined, description: 'Opaque identifier.' } };
  if (column === log?.entityId) return { ...asId, member: 'entityId' };
  const reference = referenceOf(subject, survey, column);
  if (reference?.isById && !subject.crossings.has(column.name))
    return { ...asId, json: { references: namesOf(reference.target, survey).name } };
  if (column === log?.entity) return { ...plain, member: 'entity' };
  if (column === log?.diff) return { ...plain, json: diffOf(subject) };
  if (reference || column.refers) return asId;
  if (plain.type === 'json') {
    const { type, ...inside } = insideJson(column, false);
    return { ...plain, json: inside };
  }
  if (column.type === 'timestamp without time zone') {
    const text =
      "Times without a zone are taken as UTC: name the app's zone in the view if it is another one. No index of the app on such a column serves a list.";
    return { ...plain, open: sharedPoint(text, subject.table, column.name) };
  }
  const form = formOfColumn(column);
  if (form.kind === 'sealed') {
    const description = `OPEN: it looks sealed by the codec ${preset}: may clients see it in plain?`;
    return { ...plain, json: { codec: preset, nullable: true, description } };
  }
  if (form.kind === 'base64') {
    const description = 'OPEN: its values look like base64 of texts; if they are not, remove codec.';
    return { ...plain, json: { codec: 'base64', description } };
  }
  if (isTextual(column) && isMoments(column.values)) {
    const open = `${column.name} holds times as texts: a value of another form than 2026-01-31T12:00:00Z would fail the whole page.`;
    return { type: 'timestamp', select: momentOf(plain.select), open };
  }
  return plain;
}

/** Follows a foreign key of one column, or of one with the workspace. */
export function referenceOf(
  { table, tenant }: Subject,
  { subjects }: Pick<Survey, 'subjects'>,
  column: Column,
): { target: Subject; isById: boolean } | undefined {
  const keys = table.foreignKeys.flatMap(({ columns, table: to, references }) => {
    const target = subjects.find((subject) => subject.table.name === to);
    const isOwn = columns.includes(column.name) && columns.every((name) => [column.name, tenant.name].includes(name));
    // Of a record with another key nothing shows whether it is of the same workspace.
    const isById = references[columns.indexOf(column.name)] === target?.id.name;
    return target && isOwn ? [{ target, isById }] : [];
  });
  return keys.find(({ isById }) => isById) ?? keys[0];
}

function diffOf({ log }: Subject): FieldJson {
  const { shape } = log ?? {};
  const isUsual = shape?.field === 'field' && shape.old === 'old' && shape.new === 'new';
  return {
    clean: 'audit-diff',
    ...(shape && !isUsual && { diff: shape }),
    description: shape
      ? 'Fields that changed, with old and new value.'
      : 'OPEN: no sampled value has a shape that the gateway reads, so no change is shown; describe it with the key diff.',
  };
}
