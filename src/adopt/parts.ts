import { documentsIn, isState } from './audit-log.js';
import type { Column, Table } from './catalog.js';
import { alias, isTextual, reasonByOrigin, reasonToLeaveOut } from './columns.js';
import { formOf } from './encodings.js';
import type { Fields } from './fields.js';
import { camelCase, singular, snakeCase, untaken } from './names.js';
import { reasonByValues } from './personal.js';
import { type SampleRow, valuesOf } from './samples.js';
import type { FieldJson } from './sealed-fields.js';
import { deletedPoints, softDeleteOf } from './soft-delete.js';
import type { Subject, Survey } from './survey.js';
import { workspaceSql } from './wall.js';

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
      reasonToLeaveOut(column) !== undefined ||
      documents.includes(column) ||
      isState(column, rows) ||
      reasonByValues(valuesOf(rows, column.name)) !== undefined ||
      !isReadable(column, rows);
    const leftByThemselves = others.filter(isLeft).map((column) => column.name);
    const shown = others.filter((column) => !isLeft(column) && !reasonByOrigin(column, leftByThemselves));
    const left = others.filter((column) => !shown.includes(column)).map((column) => column.name);
    const order = orderOf(part, key.columns, tenant);
    // Of a key that is the reference alone nothing is left to sort by; the types of other columns, such as json, may have no order.
    const sorted =
      order.length > 0
        ? order.map((column) => `p.${column.quoted}`)
        : shown.map((column) => `p.${column.quoted}::text`);
    const fields = shown.map((column) => {
      const as = column.inView === column.quoted || column.name === 'id' ? '' : ` as ${column.inView}`;
      return `p.${column.quoted}${as}`;
    });
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
