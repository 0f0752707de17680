import { type Column, valuesOf } from './catalog.js';
import {
  formOfColumn,
  isMoments,
  isTextual,
  momentOf,
  preset,
  reasonByOrigin,
  reasonNotToShow,
  reasonToLeaveOut,
  type Shown,
  sealed,
  shown,
  shownId,
} from './columns.js';
import type { Key } from './indexes.js';
import { camelCase, isNamed, namesOf, untaken } from './names.js';
import type { Subject, Survey } from './survey.js';

/** A member of the definition's `fields`. */
export type FieldJson = Readonly<Record<string, unknown>>;

/** A column of a view, and the field over it. */
export interface ViewColumn extends Key {
  /** In the view. */
  readonly name: string;
  readonly member: string;
  readonly field: FieldJson;
}

/** The columns of a view, the id first. */
export interface Fields {
  readonly columns: readonly ViewColumn[];
  /** Names of columns without a field, by reason. */
  readonly leftOut: readonly (readonly [reason: string, name: string])[];
  readonly open: readonly string[];
}

/** A column, and what a rule asks of it. */
interface Seen {
  readonly column: Column;
  readonly subject: Subject;
  readonly isReference: boolean;
  /** The resource to whose ids it refers. */
  readonly target: string | undefined;
  readonly values: readonly string[];
  readonly form: ReturnType<typeof formOfColumn>;
}

/** How a column is shown, where it is not shown by its name; `json` is more of the definition. */
interface Rule extends Shown {
  readonly name?: string;
  readonly member?: string;
  readonly json?: FieldJson;
  readonly open?: string;
}

function ruleOf({ column, subject, isReference, target, values, form }: Seen): Rule {
  const { id, log } = subject;
  const [plain, asId] = [shown(column), shownId(column)];
  if (column === id) return { ...asId, name: 'id', json: { nullable: undefined, description: 'Opaque identifier.' } };
  if (target !== undefined) return { ...asId, json: { references: target } };
  if (column === log?.entityId) return { ...asId, member: 'entityId' };
  if (column === log?.entity) return { ...plain, member: 'entity' };
  if (column === log?.diff) return { ...plain, json: diffOf(subject) };
  if (isReference) return asId;
  if (plain.type === 'json') return { ...plain, json: { clean: 'json-images' } };
  if (column.type === 'timestamp without time zone') {
    const open = `the times of ${column.name} have no zone and are taken as UTC: name the app's zone in the view if it is another one.`;
    return { ...plain, open };
  }
  if (form.kind === 'sealed') {
    const description = `OPEN: it looks sealed by the codec ${preset}: may clients see it in plain?`;
    return { ...plain, json: { codec: preset, nullable: true, description } };
  }
  if (form.kind === 'base64') {
    const description = 'OPEN: its values look like base64 of texts; if they are not, remove codec.';
    return { ...plain, json: { codec: 'base64', description } };
  }
  if (!isTextual(column)) return plain;
  if (isMoments(values)) {
    const open = `${column.name} holds times as texts: a value of another form than 2026-01-31T12:00:00Z would fail the whole page.`;
    return { type: 'timestamp', select: momentOf(plain.select), open };
  }
  const isProse = ('isLong' in form && form.isLong) || isNamed('prose', column.name);
  return isProse ? { ...plain, json: { clean: 'text-images' } } : plain;
}

/** The fields of a subject, column by column, without those that `skipped` names. */
export function fieldsOf(subject: Subject, survey: Survey, skipped: readonly (Column | undefined)[]): Fields {
  const { table, id, tenant } = subject;
  const others = table.columns.filter((column) => column !== id && column !== tenant && !skipped.includes(column));
  const seen = [id, ...others].map((column) => seenAs(column, subject, survey));
  const reasons = new Map(seen.map((each) => [each.column, reasonOf(each)]));
  const left = others.filter((column) => reasons.get(column) !== undefined).map(({ name }) => name);
  const hasSealed = [...reasons.values()].includes(sealed);
  for (const column of others) {
    const isKeyId = hasSealed && isNamed('keyId', column.name);
    const other = reasonByOrigin(column, left) ?? (isKeyId ? 'ids of keys, by the name' : undefined);
    reasons.set(column, reasons.get(column) ?? other);
  }
  const members = new Set<string>();
  const open: string[] = [];
  const columns = seen
    .filter(({ column }) => reasons.get(column) === undefined)
    .map((each): ViewColumn => {
      const of = each.column;
      const { select, name = of.inView, member = camelCase(name), type, json, open: point } = ruleOf(each);
      if (point !== undefined) open.push(point);
      const nullable = of.notNull ? {} : { nullable: true };
      const field = { column: name, type, ...nullable, description: of.comment ?? `The ${name}.`, ...json };
      return { of, name, select, member: untaken(member, members, ''), field };
    });
  const leftOut = others.map((column) => [reasons.get(column), column.name] as const);
  return { columns, leftOut: leftOut.filter((each): each is readonly [string, string] => each[0] !== undefined), open };
}

function seenAs(column: Column, subject: Subject, survey: Survey): Seen {
  const isReference = column !== subject.log?.entityId && referredTo(subject, survey, column) !== undefined;
  const target = isReference ? referredById(subject, survey, column) : undefined;
  const values = valuesOf(subject.rows, column.name);
  return {
    column,
    subject,
    isReference,
    target: target && namesOf(target, survey).name,
    values,
    form: formOfColumn(column, values),
  };
}

/** Why no field shows the column, by itself. */
function reasonOf({ column, subject, target }: Seen): string | undefined {
  const { id, log, rows, documents } = subject;
  if (column === id || target !== undefined) return undefined;
  const isOfLog = column === log?.entityId || column === log?.diff || column === log?.entity;
  return isOfLog ? reasonToLeaveOut(column) : reasonNotToShow(column, rows, documents);
}

/** The subject that the column refers to by a foreign key, of one column or with the workspace. */
export function referredTo({ table, tenant }: Subject, { subjects }: Survey, column: Column): Subject | undefined {
  const key = table.foreignKeys.find(
    ({ columns, table: to }) =>
      columns.includes(column.name) &&
      columns.every((name) => name === column.name || name === tenant.name) &&
      subjects.some((subject) => subject.table.name === to),
  );
  return subjects.find((subject) => subject.table.name === key?.table);
}

/** The subject to whose id the column refers. Of any other record nothing tells the gateway whether it is of the same workspace. */
function referredById(subject: Subject, survey: Survey, column: Column): Subject | undefined {
  const target = referredTo(subject, survey, column);
  const isById = subject.table.foreignKeys.some(
    ({ table, columns, references }) =>
      table === target?.table.name && references[columns.indexOf(column.name)] === target.id.name,
  );
  return isById ? target : undefined;
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
