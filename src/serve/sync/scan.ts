import type { Statement, Values } from '../../postgres/statement.js';
import type { OrderKey } from '../../resource/definition/resource.js';
import type { Section } from '../../resource/statements/sync-statements.js';
import { bindRange, nameBounds } from '../read/page.js';
import type { ReadRows } from '../read/routing.js';
import type { SyncPlace } from './pass.js';

export type ReadInPass = (statement: Statement, values: Values) => Promise<ReadRows>;

type ScanPlace = Pick<SyncPlace, 'section' | 'after'>;

/** Each range has this multiple of the rows of the one before. */
const growth = 10;

/** Cuts a section by its keys, so that each statement, and its snapshot, ends in under a second. */
export async function* listRanges(
  read: ReadInPass,
  section: Pick<Section, 'ahead'>,
  after: OrderKey | null,
  values: Values,
  size: number,
  sizeMax: number,
) {
  for (let from = after, rows = size; ; rows = Math.min(rows * growth, sizeMax)) {
    const skipping = { ...values, ...bindRange(from, null), skip: rows - 1, limit: 1 };
    const { rows: ends } = await read(section.ahead[from ? 'after' : 'all'], skipping);
    const until = (ends[0] as OrderKey | undefined) ?? null;
    yield { bounds: nameBounds(from, until), values: { ...values, ...bindRange(from, until) }, until };
    if (until === null) return;
    from = until;
  }
}

export interface ScanResult {
  readonly ids: readonly string[];
  /** Start of the first search, in epoch milliseconds: later changes of places already searched can be missing. */
  readonly asOfMs: number | null;
  readonly next: ScanPlace | null;
}

/** Bounds after which a page ends with what it found: clients and proxies wait for the first byte. */
const scanMsMax = 5000;
const rowsMax = 500_000;

/** Finds up to `limit` ids. A continued page begins with small ranges, as its next rows probably changed too. */
export async function scan(
  read: ReadInPass,
  sections: readonly Section[],
  start: ScanPlace,
  values: Values,
  limit: number,
): Promise<ScanResult> {
  const ids = new Set<string>();
  let asOfMs: number | null | undefined;
  const foundSoFar = (next: ScanPlace | null): ScanResult => ({ ids: [...ids], asOfMs: asOfMs ?? null, next });
  const startedMs = performance.now();
  for (let index = start.section; index < sections.length; index++) {
    const section = sections[index] as Section;
    const after = index === start.section ? start.after : null;
    const size = after === null ? rowsMax : Math.min(limit * growth, rowsMax);
    for await (const range of listRanges(read, section, after, values, size, rowsMax)) {
      const wanted = limit - ids.size;
      const { rows, ...search } = await read(section.find[range.bounds], { ...range.values, limit: wanted });
      if (asOfMs === undefined) asOfMs = search.asOfMs;
      for (const row of rows) ids.add(row[section.idAt] as string);
      if (rows.length === wanted) return foundSoFar({ section: index, after: rows.at(-1) as OrderKey });
      if (range.until !== null && performance.now() - startedMs > scanMsMax)
        return foundSoFar({ section: index, after: range.until });
    }
  }
  return foundSoFar(null);
}
