/** The known name with the fewest differing letters, at most `distanceMax`. */
export function nearestName(
  name: string,
  known: readonly string[],
  distanceMax: (known: string) => number,
): string | undefined {
  const [nearest] = known
    .filter((candidate) => Math.abs(candidate.length - name.length) <= distanceMax(candidate))
    .map((candidate) => ({ candidate, distance: editDistance(name, candidate) }))
    .filter(({ candidate, distance }) => distance <= distanceMax(candidate) && distance < candidate.length)
    .sort((a, b) => a.distance - b.distance);
  return nearest?.candidate;
}

/** The end of a sentence about an unknown name: a question for the likely one, or the full stop. */
export function suggest(name: string, known: readonly string[], synonyms?: ReadonlyMap<string, string>): string {
  const plain = plainOf(name);
  const meant =
    known.find((each) => plainOf(each) === plain || each === synonyms?.get(plain)) ?? nearestName(name, known, () => 2);
  return meant === undefined ? '.' : `: did you mean ${meant}?`;
}

/** "page_size" and "pageSize" → "pagesize". */
const plainOf = (name: string): string => name.toLowerCase().replace(/[^a-z0-9]/g, '');

function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (const [i, letter] of [...a].entries()) {
    const next = [i + 1];
    for (let j = 0; j < b.length; j++) {
      const replaced = (row[j] as number) + (letter === b[j] ? 0 : 1);
      next.push(Math.min(replaced, (row[j + 1] as number) + 1, (next[j] as number) + 1));
    }
    row = next;
  }
  return row.at(-1) as number;
}
