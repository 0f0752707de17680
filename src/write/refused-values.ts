import type { WritableMember } from '../definition/write-validators.js';
import { invalid, refusedValues, sqlStateOf } from '../errors.js';

/**
 * Turns PostgreSQL's refusal of a written value into a 400: the column holds less than the definition allows. Names the member
 * where only one of those given has such a type. Rethrows all other errors.
 */
export function asRefusedValue(
  writable: readonly WritableMember[],
  given: Readonly<Record<string, string | null>>,
): (error: unknown) => never {
  return (error) => {
    const refusal = refusedValues[sqlStateOf(error) ?? ''];
    if (refusal === undefined) throw error;
    const { code, detail, types } = refusal;
    const members = writable.filter(({ name, type }) => types.includes(type) && (given[name] ?? null) !== null);
    const pointer = members.length === 1 ? `/${members[0]?.name}` : '';
    throw invalid([
      { pointer, code, detail: pointer === '' ? `A value is refused: ${detail}` : `This is refused: ${detail}` },
    ]);
  };
}
