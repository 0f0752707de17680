import { UnusableDestination } from '../destination.js';
import { stateTable, statusTable } from '../document.js';
import type { Target } from '../options.js';
import { isDatabase } from '../options.js';
import { quoteName, type Session } from './dialect.js';
import { Shape } from './shape.js';

interface Status {
  readonly resource: string;
  readonly table: string | null;
  readonly workspaceId: string | null;
  readonly dataAsOf: string | null;
  /** Age by the clock of the destination. */
  readonly ageSeconds: number | null;
  readonly updatedAt: string | null;
  readonly comparedAt: string | null;
  readonly verifiedAt: string | null;
  readonly hiddenReferences: number | null;
  readonly failedAt: string | null;
  readonly failure: string | null;
  readonly tokenExpiresAt: string | null;
  readonly timeZone: string | null;
  /** Tables and columns that the document no longer has. */
  readonly gone: readonly string[];
}

/** Writes the freshness as JSON. Throws Unusable. */
export async function composeStatus(
  target: Target,
  maxAgeMs: number | null,
): Promise<{ readonly text: string; readonly isFresh: boolean }> {
  const resources = await readInCopy(target, readStatus);
  const getAge = (status?: Status): number => status?.ageSeconds ?? Number.POSITIVE_INFINITY;
  const [oldest] = resources.toSorted((one, other) => (getAge(one) > getAge(other) ? -1 : 1));
  const { dataAsOf = null, ageSeconds = null, tokenExpiresAt = null } = oldest ?? {};
  const text = `${JSON.stringify({ dataAsOf, ageSeconds, tokenExpiresAt, resources }, null, 2)}\n`;
  return { text, isFresh: maxAgeMs === null || (ageSeconds !== null && ageSeconds * 1000 <= maxAgeMs) };
}

/** Opens a copy for reading alone. Throws Unusable. */
async function readInCopy<T>(
  { to, schema }: Target,
  read: (session: Session, schema: string) => Promise<T>,
): Promise<T> {
  if (isDatabase(to)) return (await import('./postgres.js')).readPostgres(to, (session) => read(session, schema));
  return (await import('./duckdb.js')).readDuckdb(to, (session) => read(session, 'main'));
}

/** Names in `--status` of the columns of `pull_status`; columns that end in `_at` or `_of` are moments. */
const columns = {
  resource: 'resource',
  table: 'table_name',
  workspaceId: 'workspace_id',
  dataAsOf: 'data_as_of',
  ageSeconds: 'age_seconds',
  updatedAt: 'updated_at',
  comparedAt: 'compared_at',
  verifiedAt: 'verified_at',
  hiddenReferences: 'hidden_references',
  failedAt: 'failed_at',
  failure: 'failure',
  tokenExpiresAt: 'token_expires_at',
  timeZone: 'time_zone',
} as const;

async function readStatus(session: Session, schema: string): Promise<Status[]> {
  const qualify = (table: string): string => `${quoteName(schema)}.${quoteName(table)}`;
  // A moment in the future counts as unknown: a clock is wrong.
  const status = `select *, floor(extract(epoch from current_timestamp - data_as_of)) as age_seconds from ${qualify(statusTable)}`;
  const texts = Object.values(columns).map((name) => `cast(${name} as varchar) as ${name}`);
  const rows = await session
    .query<Record<string, string | null>>(
      `select ${texts.join(', ')}, shape from (${status}) s left join (select resource, shape from ${qualify(stateTable)}) m using (resource) order by resource`,
    )
    .catch(() => {
      throw new UnusableDestination(`There is no copy in ${schema}: it has no table ${statusTable} that can be read.`);
    });
  return rows.map(({ shape, ...row }) => {
    const isKnown = Number(row.age_seconds) >= -1;
    const values = Object.entries(columns).map(([name, column]) => {
      const value = row[column] ?? null;
      if (value === null || (column === 'data_as_of' && !isKnown)) return [name, null];
      if (/_(at|of)$/.test(column)) return [name, formatMoment(value)];
      if (column === 'age_seconds') return [name, isKnown ? Math.max(0, Number(value)) : null];
      return [name, column === 'hidden_references' ? Number(value) : value];
    });
    return { ...Object.fromEntries(values), gone: Shape.read(shape ?? null).gone } as Status;
  });
}

/** Reads a moment as both databases print it: `2026-01-02 03:04:05.678+00`. */
const formatMoment = (text: string): string => new Date(text.replace(' ', 'T').replace(/\+00$/, 'Z')).toISOString();
