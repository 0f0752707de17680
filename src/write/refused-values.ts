import type pg from 'pg';
import type { WritableMember } from '../definition/write-validators.js';
import { invalid, refusedValues, sqlStateOf } from '../errors.js';

/**
 * Turns PostgreSQL's refusal of a written value into a 400: the column holds less than the definition allows, a unique index holds the value
 * already, or a CHECK or a trigger of the app does not allow it. Names the member where only one of those given has such a type; the log names the
 * constraint. Rethrows all other errors.
 */
export function asRefusedValue(
  writable: readonly WritableMember[],
  given: Readonly<Record<string, string | null>>,
): (error: unknown) => never {
  return (error) => {
    const refusal = refusedValues[sqlStateOf(error) ?? ''];
    if (refusal === undefined || isPrimaryKey(error as pg.DatabaseError)) throw error;
    const { code, detail, types } = refusal;
    const members = writable.filter(
      ({ name, type }) => (types === 'all' || types.includes(type)) && (given[name] ?? null) !== null,
    );
    const pointer = members.length === 1 ? `/${members[0]?.name}` : '';
    const sentence = pointer === '' ? `A value is refused: ${detail}` : `This is refused: ${detail}`;
    throw invalid([{ pointer, code, detail: sentence }], 'invalid_request', error as Error);
  };
}

/** Whether an id is taken that no client gave, such as by a sequence that was restored behind its table; by PostgreSQL's name of the index. */
function isPrimaryKey({ constraint }: pg.DatabaseError): boolean {
  return constraint?.endsWith('_pkey') === true;
}
