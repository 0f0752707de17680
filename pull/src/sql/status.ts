import { Unusable } from '../destination.js';
import { statusTable } from '../document.js';
import type { Target } from '../options.js';
import { isDatabase } from '../options.js';
import { quoted, type Session } from './dialect.js';

/** How fresh the copy of a resource is. */
interface Status {
  readonly resource: string;
  readonly table: string;
  readonly workspaceId: string;
  readonly dataAsOf: string | null;
  readonly comparedAt: string | null;
  readonly verifiedAt: string | null;
  readonly hiddenReferences: number | null;
}

/** How fresh the copy is, as a JSON text. Throws Unusable. */
export async function statusText(
  target: Target,
  maxAgeMs: number | null,
): Promise<{ readonly text: string; readonly isFresh: boolean }> {
  const resources = await inCopy(target, readStatus);
  const moments = resources.map(({ dataAsOf }) => (dataAsOf === null ? Number.NaN : Date.parse(dataAsOf)));
  const oldestMs = Math.min(...moments); // NaN if one is unknown
  const ageSeconds = Number.isFinite(oldestMs) ? Math.max(0, Math.round((Date.now() - oldestMs) / 1000)) : null;
  const dataAsOf = ageSeconds === null ? null : new Date(oldestMs).toISOString();
  const text = `${JSON.stringify({ dataAsOf, ageSeconds, resources }, null, 2)}\n`;
  return { text, isFresh: maxAgeMs === null || (ageSeconds !== null && ageSeconds * 1000 <= maxAgeMs) };
}

/** Opens a copy for reading alone. Throws Unusable. */
async function inCopy<T>({ to, schema }: Target, read: (session: Session, schema: string) => Promise<T>): Promise<T> {
  if (isDatabase(to)) return (await import('./postgres.js')).readPostgres(to, (session) => read(session, schema));
  return (await import('./duckdb.js')).readDuckdb(to, (session) => read(session, 'main'));
}

async function readStatus(session: Session, schema: string): Promise<Status[]> {
  const place = `${quoted(schema)}.${quoted(statusTable)}`;
  const moment = (column: string): string => `cast(${column} as varchar) as ${column}`;
  const rows = await session
    .rows<Record<string, string | number | null>>(
      `select resource, table_name, workspace_id, ${['data_as_of', 'compared_at', 'verified_at'].map(moment).join(', ')}, hidden_references
       from ${place} order by resource`,
    )
    .catch(() => {
      throw new Unusable(`There is no copy in ${schema}: it has no table ${statusTable} that can be read.`);
    });
  return rows.map((row) => ({
    resource: String(row.resource),
    table: String(row.table_name),
    workspaceId: String(row.workspace_id),
    dataAsOf: momentIn(row.data_as_of),
    comparedAt: momentIn(row.compared_at),
    verifiedAt: momentIn(row.verified_at),
    hiddenReferences: row.hidden_references == null ? null : Number(row.hidden_references),
  }));
}

/** As both databases print it: `2026-01-02 03:04:05.678+00`. */
const momentIn = (text: string | number | null | undefined): string | null =>
  text == null ? null : new Date(String(text).replace(' ', 'T').replace(/\+00$/, 'Z')).toISOString();
