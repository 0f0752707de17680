import type { Key } from '../definition/row-serializer.js';
import type { Bounds } from '../definition/statements.js';
import type { Section } from '../definition/sync-statements.js';
import type { Statement, Values } from '../postgres/statement.js';
import { rangeValues } from '../read/chunks.js';
import type { ListRequest } from '../read/parse.js';
import { type PagePhase, type ReadDeps, type Requirement, type Rows, readRows } from '../read/routing.js';

/** Numbers of rows of the ranges of a section. */
export interface RangeSizes {
  readonly first: number;
  /** Each range is so many times as large as the one before. */
  readonly growth: number;
  /** Rows that a statement examines at most, so that it ends in well under a second, and its snapshot with it. */
  readonly max: number;
}

/** A place in the sections of a pass. */
export interface ScanPlace {
  readonly section: number;
  readonly after: Key | null;
}

/** Dependencies of a scan. The requirement is that of the next statement. */
export interface ScanDeps {
  readonly reads: ReadDeps;
  readonly list: ListRequest;
  readonly requirement: () => Requirement;
}

/** Runs a small statement of a pass, on a replica that is as current as the pass. */
export function readInPass(
  { reads, list, requirement }: ScanDeps,
  statement: Statement,
  values: Values,
): Promise<Rows> {
  const phase: PagePhase = { kind: 'first', requirement: requirement() };
  return readRows(reads, list, statement, values, phase);
}

/** A range of a section, small enough for one statement. */
export interface ScanRange {
  readonly bounds: Bounds;
  readonly values: Values;
  /** The end of the range; null at the end of the section. */
  readonly until: Key | null;
}

/** Cuts the rest of a section into ranges. Its end is not searched for when the planner takes the whole section for a single range. */
export async function* rangesOf(
  deps: ScanDeps,
  section: Section,
  after: Key | null,
  values: Values,
  { first, growth, max }: RangeSizes,
): AsyncGenerator<ScanRange> {
  for (let from = after, size = first; ; size = Math.min(size * growth, max)) {
    const isLast = size === max && (await rowsOf(deps, section, values)) <= max;
    const until = isLast ? null : await keyAhead(deps, section, from, values, size);
    const bounds = from ? (until ? 'between' : 'after') : until ? 'until' : 'all';
    yield { bounds, values: { ...values, ...rangeValues({ after: from, until }) }, until };
    if (until === null) return;
    from = until;
  }
}

/** The planner's estimate of the rows of a section. It takes the second condition of the tenant wall for one that half of the rows meet. */
async function rowsOf(deps: ScanDeps, { estimate }: Section, values: Values): Promise<number> {
  const { rows } = await readInPass(deps, estimate, values);
  const [{ Plan }] = JSON.parse(rows[0]?.[0] as string) as [{ Plan: { 'Plan Rows': number } }];
  return Plan['Plan Rows'] * 2;
}

/** The key so many rows behind another; null when there are fewer. */
async function keyAhead(
  deps: ScanDeps,
  { ahead }: Section,
  from: Key | null,
  values: Values,
  rowsAhead: number,
): Promise<Key | null> {
  const bounds = { ...values, ...rangeValues({ after: from, until: null }), skip: rowsAhead - 1, limit: 1 };
  const { rows } = await readInPass(deps, ahead[from ? 'after' : 'all'], bounds);
  return (rows[0] as Key | undefined) ?? null;
}

/** Ids of the rows that a scan found, and the place to go on; null when all sections are at their end. */
export interface Found {
  readonly ids: readonly string[];
  /** The moment of the first search, epoch milliseconds: later changes of a place that it had searched can be missing. */
  readonly asOfMs: number | null;
  readonly next: ScanPlace | null;
}

/**
 * Finds the ids of up to `limit` rows that meet the condition of the sections, from a place on. Ends early after `scanMsMax`, and when
 * several sections have the same ids: then there can be fewer, or none.
 */
export async function scan(
  deps: ScanDeps,
  sections: readonly Section[],
  place: ScanPlace,
  values: Values,
  { limit, scanMsMax }: { readonly limit: number; readonly scanMsMax: number },
): Promise<Found> {
  const ids = new Set<string>();
  let asOfMs: number | null | undefined;
  const found = (next: ScanPlace | null): Found => ({ ids: [...ids], asOfMs: asOfMs ?? null, next });
  const startedMs = performance.now();
  for (let index = place.section; index < sections.length; index++) {
    const section = sections[index] as Section;
    const after = index === place.section ? place.after : null;
    for await (const range of rangesOf(deps, section, after, values, sizesOf(after, limit))) {
      const wanted = limit - ids.size;
      const { rows, ...read } = await readInPass(deps, section.find[range.bounds], { ...range.values, limit: wanted });
      if (asOfMs === undefined) asOfMs = read.asOfMs;
      for (const row of rows) ids.add(row[section.idAt] as string);
      if (rows.length === wanted) return found({ section: index, after: rows.at(-1) as Key });
      if (range.until !== null && performance.now() - startedMs > scanMsMax)
        return found({ section: index, after: range.until });
    }
  }
  return found(null);
}

const rowsMax = 500_000;
const growth = 10;

/**
 * A section is read at once where that is possible: that costs least where little changed. A page that begins inside a section follows a
 * full one, so the next rows probably changed as well, and its ranges begin small.
 */
function sizesOf(after: Key | null, limit: number): RangeSizes {
  return { first: after === null ? rowsMax : Math.min(limit * growth, rowsMax), growth, max: rowsMax };
}
