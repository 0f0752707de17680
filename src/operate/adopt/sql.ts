import { composePolicy, type PolicyCommand } from '../../resource/statements/walls.js';
import type { Point, ReferenceStep, ShownRows, Table } from './schema.js';

// The SQL of drafts. The name of an app's table or column enters it as PostgreSQL quotes it, and in comments and texts.

/** The table of a view has this alias. */
export const alias = 't';
/** The codec whose values are known by how they begin. */
export const sealedCodec = 'aes-256-gcm';

/** In such a list a point that does not hold is false. */
export type Points = readonly (string | Point | false | undefined)[];

export interface DraftFile {
  /** The path is below sql/views. */
  readonly path: string;
  readonly about: readonly string[];
  /** Each becomes a comment of the file, which `grep -rn OPEN:` finds. */
  readonly open?: Points;
  readonly sql: string;
  readonly index?: Readonly<{ table: string; where: string; keys: readonly string[]; bytes: number }>;
}

export function printFile({ about, open = [], sql }: DraftFile): string {
  // Without line ends a name cannot leave its comment.
  const comments = [
    ...about,
    ...toPoints(open).map((point) => (point.of ? `Note: ${point.of}: ${point.text}` : `OPEN: ${formatPoint(point)}`)),
  ].map((text) => `-- ${text.replace(/[\r\n]+/g, ' ')}\n`);
  return `${comments.join('')}${sql}\n`;
}

/** Names the first places of the point, or all. */
export function formatPoint({ text, places = [] }: Point, placesMax = Number.POSITIVE_INFINITY): string {
  if (places.length === 0) return text;
  const others = places.length - placesMax;
  return `${text} In ${places.slice(0, placesMax).join(', ')}${others > 0 ? `, and ${others} others, which the file lists` : ''}.`;
}

export function toPoints(open: Points = []): Point[] {
  return open.flatMap((point) => (typeof point === 'string' ? { text: point } : point || []));
}

export function quoteLiteral(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

export function composeWhere(conditions: readonly string[], between = ' and '): string {
  return conditions.length === 0 ? '' : `\n  where ${conditions.join(between)}`;
}

/** Writes `expression as name`, unless it is a column of that name. */
export function nameAs(expression: string, name: string): string {
  return expression.replace(/^\w+\./, '') === name ? expression : `${expression} as ${name}`;
}

/** A table with more rows is read by some pages, so that a draft costs about the same for any size. */
export const sampledRowsMax = 20_000;

/** Reads the same pages of a table at each call, enough for about so many rows. */
export function drawSample({ quoted, rows }: Pick<Table, 'quoted' | 'rows'>, rowsMax = sampledRowsMax): string {
  return `${quoted} tablesample system (${Math.min(100, (100 * rowsMax) / Math.max(rows, 1))}) repeatable (0)`;
}

// The workspace of a row: a column of the table, or of one to which its references lead.

export function joinWorkspace({ tenant, steps }: ShownRows['way'], row = alias): string {
  return `${getAlias(steps.length, row)}.${tenant?.quoted}`;
}

/** A row to which no other refers back is joined to none: it has no workspace, as a row with NULL in the column has none. */
export function joinFrom(quoted: string, { steps }: ShownRows['way'], row = alias, isLeft = isOptional): string {
  const joins = steps.map(
    ({ from, table, to }, i) =>
      `\n    ${isLeft(steps, i) ? 'left ' : ''}join ${table.quoted} ${getAlias(i + 1, row)} on ${getAlias(i + 1, row)}.${to.quoted} = ${getAlias(i, row)}.${from.quoted}`,
  );
  return `  from ${quoted} ${row}${joins.join('')}`;
}

/** A row can lack a step back, since no other row has to refer to it, and with it all further steps. */
export function isOptional(steps: readonly ReferenceStep[], i: number): boolean {
  return steps.slice(0, i + 1).some(({ isBack }) => isBack);
}

export function getAlias(steps: number, row = alias): string {
  return steps === 0 ? row : `${row === alias ? '' : row}w${steps}`;
}

export function composeSequenceGrant(sequence: string): string {
  return `grant usage on sequence ${sequence} to gateway_writer; -- a column default runs with the rights of the inserting role`;
}

/** Only tables with row-level security get policies. */
export function composePolicies(
  tables: readonly Pick<Table, 'quoted' | 'hasRowSecurity'>[],
  commands: readonly PolicyCommand[],
): string[] {
  const hidden = new Set(tables.flatMap(({ quoted, hasRowSecurity }) => (hasRowSecurity ? [quoted] : [])));
  return [...hidden].flatMap((table) => commands.map((command) => composePolicy(table, command)));
}
