import type { ReplicaRequirement } from '../db/replicas.js';
import type { Statement, Values } from '../db/statement.js';
import type { Key } from '../definition/row-serializer.js';
import type { Bounds } from '../definition/statements.js';
import type { Section } from '../definition/sync-statements.js';
import { rangeValues } from '../read/chunks.js';
import type { ListRequest } from '../read/parse.js';
import { type PagePhase, type ReadDeps, type Rows, readRows } from '../read/routing.js';

/** Rows that a statement examines at most, so that it ends in well under a second and its snapshot with it. */
const rowsPerStatement = 100_000;

/** A place in the sections of a pass. */
export interface ScanPlace {
  readonly section: number;
  readonly after: Key | null;
}

/** Dependencies of a scan. The requirement is that of the next statement. */
export interface ScanDeps {
  readonly reads: ReadDeps;
  readonly list: ListRequest;
  readonly requirement: () => ReplicaRequirement;
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

/** Cuts the rest of a section into ranges. */
export async function* rangesOf(
  deps: ScanDeps,
  section: Section,
  after: Key | null,
  values: Values,
): AsyncGenerator<ScanRange> {
  for (let from = after; ; ) {
    const ahead = { ...values, ...rangeValues({ after: from, until: null }), skip: rowsPerStatement - 1, limit: 1 };
    const { rows } = await readInPass(deps, section.ahead[from ? 'after' : 'all'], ahead);
    const until = (rows[0] as Key | undefined) ?? null;
    const bounds = from ? (until ? 'between' : 'after') : until ? 'until' : 'all';
    yield { bounds, values: { ...values, ...rangeValues({ after: from, until }) }, until };
    if (until === null) return;
    from = until;
  }
}

/** Ids of the rows that a scan found, and the place to go on; null when all sections are at their end. */
export interface Found {
  readonly ids: readonly string[];
  readonly next: ScanPlace | null;
}

/**
 * Finds the ids of up to `limit` rows that meet the condition of the sections, from a place on. Ends early after `scanMsMax`:
 * then there can be fewer, or none.
 */
export async function scan(
  deps: ScanDeps,
  sections: readonly Section[],
  place: ScanPlace,
  values: Values,
  { limit, scanMsMax }: { readonly limit: number; readonly scanMsMax: number },
): Promise<Found> {
  const ids = new Set<string>();
  const startedMs = performance.now();
  for (let index = place.section; index < sections.length; index++) {
    const section = sections[index] as Section;
    const after = index === place.section ? place.after : null;
    for await (const range of rangesOf(deps, section, after, values)) {
      let from: ScanRange | null = range;
      while (from !== null) {
        const wanted = limit - ids.size;
        const { rows } = await readInPass(deps, section.find[from.bounds], { ...from.values, limit: wanted });
        for (const row of rows) ids.add(row[section.idAt] as string);
        const isFull: boolean = rows.length === wanted;
        const last = isFull ? (rows.at(-1) as Key) : range.until;
        if (ids.size === limit) return { ids: [...ids], next: { section: index, after: last } };
        // Several parts of one record leave room for more of the range.
        from = isFull ? behind(range, last as Key) : null;
      }
      if (range.until !== null && performance.now() - startedMs > scanMsMax)
        return { ids: [...ids], next: { section: index, after: range.until } };
    }
  }
  return { ids: [...ids], next: null };
}

/** The rest of a range behind a key. */
function behind({ values, until }: ScanRange, key: Key): ScanRange {
  const bounds = until ? 'between' : 'after';
  return { bounds, values: { ...values, ...rangeValues({ after: key, until }) }, until };
}
