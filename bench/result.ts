/** A goal and its result. */
export interface Verdict {
  /** Measurement and comparison, such as "Detail read against Platformatic DB". */
  readonly what: string;
  readonly value: number;
  readonly goal: number;
  /** Whether the goal is a ceiling or a floor. */
  readonly bound: 'at most' | 'at least';
  /** "×" for ratios; these make the chart. */
  readonly unit: '×' | 'ms' | 'MB' | 'statements';
}

export interface Table {
  readonly title: string;
  /** Explanation for the reader of the table. */
  readonly note: string;
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/** Result of a case. */
export interface CaseResult {
  readonly verdicts: readonly Verdict[];
  readonly tables: readonly Table[];
  /** The parts that were left out, with the reason of each. */
  readonly skipped: readonly string[];
}

export function isReached({ value, goal, bound }: Verdict): boolean {
  return bound === 'at most' ? value <= goal : value >= goal;
}

/** Three figures are all that such measurements carry. */
export function figure(value: number): string {
  if (Number.isNaN(value)) return '–';
  const digits = value === 0 ? 0 : Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value))));
  return value.toLocaleString('en', {
    minimumFractionDigits: Math.min(digits, 2),
    maximumFractionDigits: Math.min(digits, 2),
  });
}
