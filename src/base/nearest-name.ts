import { distance } from 'fastest-levenshtein';

/** Finds the known name with the fewest differing letters, at most `distanceMax`. */
export function findNearestName(
  name: string,
  known: readonly string[],
  distanceMax: (known: string) => number,
): string | undefined {
  const [nearest] = known
    .filter((candidate) => Math.abs(candidate.length - name.length) <= distanceMax(candidate))
    .map((candidate) => ({ candidate, letters: distance(name, candidate) }))
    .filter(({ candidate, letters }) => letters <= distanceMax(candidate) && letters < candidate.length)
    .sort((a, b) => a.letters - b.letters);
  return nearest?.candidate;
}

/** Ends a sentence about an unknown name with a question for the likely one, or with the full stop. */
export function suggest(name: string, known: readonly string[], synonyms?: ReadonlyMap<string, string>): string {
  const plain = simplifyName(name);
  const meant =
    known.find((each) => simplifyName(each) === plain || each === synonyms?.get(plain)) ??
    findNearestName(name, known, () => 2);
  return meant === undefined ? '.' : `: did you mean ${meant}?`;
}

/** Turns "page_size" and "pageSize" into "pagesize". */
const simplifyName = (name: string): string => name.toLowerCase().replace(/[^a-z0-9]/g, '');
