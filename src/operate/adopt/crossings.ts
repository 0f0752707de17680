import type pg from 'pg';
import { findReferenceOf } from './fields.js';
import { type Point, type Subject, type Survey, sharePoint } from './schema.js';
import { drawSample, joinFrom, joinWorkspace } from './sql.js';

const rowsMax = 1000;

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
  const sampledRows = `(select * from ${drawSample(table, rowsMax)} limit ${rowsMax})`;
  const others = references.map(
    ({ target }, i) =>
      // An id can be unique within its workspace alone.
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
  const names = [...crossings].join(', ');
  const remedy =
    'is its workspace the right one? The field has no "references", because clients cannot read such a record.';
  return crossings.size > 0 && sharePoint(`A row refers to a record of another workspace: ${remedy}`, table, names);
}
