import { prepared, type Statement } from '../../postgres/statement.js';
import { type FieldType, fieldType } from '../definition/field-types.js';

/**
 * SQL of which a statement is made. `{name}` in it is a value that is bound; each place has a number of its own, so that PostgreSQL finds a
 * type for each. Names of a definition stand in it quoted, values never.
 */
export type Sql = string;

/** A column or a view, whose names are letters, digits and underscores: gateway.klanten → "gateway"."klanten". */
export const quoted = (name: string): Sql => `"${name.replaceAll('.', '"."')}"`;
export const quotedList = (names: readonly string[]): Sql => names.map(quoted).join(', ');

/** ` where …`; nothing without conditions. */
export const where = (conditions: readonly Sql[]): Sql =>
  conditions.length === 0 ? '' : ` where ${conditions.join(' and ')}`;

export const orderBy = (columns: readonly string[], direction: 'asc' | 'desc' = 'asc'): Sql =>
  ` order by ${columns.map((column) => `${quoted(column)} ${direction}`).join(', ')}`;

/** A value as it is compared with a column of the type: no number is out of range. */
export function typed(type: FieldType, value: Sql): Sql {
  const { comparedAs } = fieldType(type);
  return comparedAs === undefined ? value : `${value}::${comparedAs}`;
}

/** The statement of an SQL text, whose parameters are numbered in their order. */
export function statement(label: string, sql: Sql, inTableOrder?: true): Statement {
  const parameters: string[] = [];
  const text = sql.replace(/\{([\w.-]+)\}/g, (_, parameter: string) => `$${parameters.push(parameter)}`);
  return prepared(label, text, parameters, inTableOrder);
}
