import type { Statement, Values } from '../../postgres/statement.js';
import type { Key } from '../../resource/definition/row-serializer.js';
import type { Bounds } from '../../resource/statements/statements.js';
import type { Section } from '../../resource/statements/sync-statements.js';
import { rangeValues } from '../read/page.js';
import type { Rows } from '../read/routing.js';

/** Runs a small statement of a pass, on a replica that is as current as the pass. */
export type ReadInPass = (statement: Statement, values: Values) => Promise<Rows>;

/** A place in the sections of a pass. */
export interface ScanPlace {
  readonly section: number;
  readonly after: Key | null;
}

/** A range of a section, small enough for one statement. */
interface ScanRange {
  readonly bounds: Bounds;
  readonly values: Values;
  /** The end of the range; null at the end of the section. */
  readonly until: Key | null;
}

/** Each range of a section has so many times the rows of the one before. */
const growth = 10;

/**
 * Cuts the rest of a section into ranges by its keys, the first of `size` rows and none of more than `sizeMax`, so that each statement ends in
 * well under a second, and its snapshot with it. An estimate of the planner cannot do that: it is of a workspace of average size.
 */
export async function* rangesOf(
  read: ReadInPass,
  section: Section,
  after: Key | null,
  values: Values,
  size: number,
  sizeMax: number,
): AsyncGenerator<ScanRange> {
  for (let from = after, rows = size; ; rows = Math.min(rows * growth, sizeMax)) {
    const skipping = { ...values, ...rangeValues({ after: from, until: null }), skip: rows - 1, limit: 1 };
    const until = ((await read(section.ahead[from ? 'after' : 'all'], skipping)).rows[0] as Key | undefined) ?? null;
    const bounds = from ? (until ? 'between' : 'after') : until ? 'until' : 'all';
    yield { bounds, values: { ...values, ...rangeValues({ after: from, until }) }, until };
    if (until === null) return;
    from = until;
  }
}

/** Ids of the rows that a scan found, and the place to go on; null when all sections are at their end. */
interface Found {
  readonly ids: readonly string[];
  /** The moment of the first search, epoch milliseconds: later changes of a place that it had searched can be missing. */
  readonly asOfMs: number | null;
  readonly next: ScanPlace | null;
}

/** A page searches for changes so long, then it ends with those that it found: clients and proxies wait for the first byte. */
const scanMsMax = 5000;
const rowsMax = 500_000;

/**
 * Finds the ids of up to `limit` rows that meet the condition of the sections, from a place on. Ends early after `scanMsMax`, and when
 * several sections have the same ids: then there can be fewer, or none. A section is read at once where that is possible: that costs least
 * where little changed. A page that begins inside a section follows a full one, so the next rows probably changed as well, and its ranges
 * begin small.
 */
export async function scan(
  read: ReadInPass,
  sections: readonly Section[],
  place: ScanPlace,
  values: Values,
  limit: number,
): Promise<Found> {
  const ids = new Set<string>();
  let asOfMs: number | null | undefined;
  const found = (next: ScanPlace | null): Found => ({ ids: [...ids], asOfMs: asOfMs ?? null, next });
  const startedMs = performance.now();
  for (let index = place.section; index < sections.length; index++) {
    const section = sections[index] as Section;
    const after = index === place.section ? place.after : null;
    const size = after === null ? rowsMax : Math.min(limit * growth, rowsMax);
    for await (const range of rangesOf(read, section, after, values, size, rowsMax)) {
      const wanted = limit - ids.size;
      const { rows, ...search } = await read(section.find[range.bounds], { ...range.values, limit: wanted });
      if (asOfMs === undefined) asOfMs = search.asOfMs;
      for (const row of rows) ids.add(row[section.idAt] as string);
      if (rows.length === wanted) return found({ section: index, after: rows.at(-1) as Key });
      if (range.until !== null && performance.now() - startedMs > scanMsMax)
        return found({ section: index, after: range.until });
    }
  }
  return found(null);
}
