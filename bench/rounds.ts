/**
 * Gives each contender its turn, round after round: A B C, A B C, …, so that other work on the machine affects all alike.
 * The result holds one list per contender with a value per round.
 */
export async function alternate<C, T>(
  contenders: readonly C[],
  rounds: number,
  measure: (contender: C) => Promise<T>,
): Promise<T[][]> {
  const results: T[][] = contenders.map(() => []);
  for (let round = 0; round < rounds; round++) {
    for (const [i, contender] of contenders.entries()) results[i]?.push(await measure(contender));
  }
  return results;
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? Number.NaN)) / 2;
}

/** Median of a number in each of the results. */
export function middle<T>(results: readonly T[], of: (result: T) => number): number {
  return median(results.map(of));
}

/** The ratios of pairs that ran next to each other. */
export function pairedRatios<T>(
  ours: readonly T[] = [],
  theirs: readonly T[] = [],
  of: (result: T) => number,
): number[] {
  return ours.map((result, i) => of(result) / (theirs[i] === undefined ? Number.NaN : of(theirs[i])));
}
