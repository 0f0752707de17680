import type { FaultCluster } from '../fault-cluster.js';
import type { Written } from './clients.js';

interface Row {
  readonly id: string;
  readonly naam: string;
  readonly version: number;
}
interface Entry {
  readonly id: string;
  readonly actie: string;
  readonly mark: string;
}

/** Is empty if each 2xx had its effect exactly once, each refusal none, versions have no gaps, and every change has one log entry. */
export async function disagreements(
  setUp: FaultCluster,
  prefix: string,
  written: readonly Written[],
): Promise<string[]> {
  const rows = await setUp.sql<Row>(
    `select id, naam, version::int from app.installaties where id = any ($1) or naam like $2`,
    [written.map(({ id }) => id), `${prefix}%`],
  );
  const entries = await setUp.sql<Entry>(
    `select entiteit_id id, actie, change ->> 'nieuw' mark
      from app.logboeken, jsonb_array_elements(wijzigingen) change
      where entiteit = 'installatie' and change ->> 'veld' = 'naam' and change ->> 'nieuw' like $1`,
    [`${prefix}%`],
  );
  const [kept] = await setUp.sql<{ stored: number; open: number }>(
    `select count(status)::int stored, count(*) filter (where status is null)::int open from gateway.idempotency`,
  );
  const wrong: string[] = [];
  const done = written.filter((write) => write.done);
  const byMark = grouped(entries, ({ mark }) => mark);
  for (const { mark, kind, done: isDone, id } of written) {
    const found = byMark.get(mark) ?? [];
    const expected = isDone ? [`${kind === 'create' ? 'aangemaakt' : 'gewijzigd'} ${id}`] : [];
    const actual = found.map((entry) => `${entry.actie} ${entry.id}`);
    if (actual.join() !== expected.join()) wrong.push(`${mark}: log has [${actual}], answers say [${expected}]`);
  }
  if (entries.length !== done.length) wrong.push(`${entries.length} log entries for ${done.length} changes`);
  if (kept?.stored !== done.length || kept.open !== 0)
    wrong.push(`${JSON.stringify(kept)} keys for ${done.length} changes`);
  const byId = grouped(done, ({ id }) => id);
  for (const { id, naam, version } of rows) {
    const changes = (byId.get(id) ?? []).sort((a, b) => a.version - b.version);
    const versions = changes.map((change) => change.version);
    if (versions.join() !== Array.from({ length: version }, (_, i) => i + 1).join())
      wrong.push(`${id} is at ${version}, answers gave ${versions}`);
    if (changes.at(-1)?.mark !== naam) wrong.push(`${id} is ${naam}, the last change made it ${changes.at(-1)?.mark}`);
  }
  const ids = new Set(rows.map(({ id }) => id));
  for (const id of byId.keys()) if (!ids.has(id)) wrong.push(`${id} is lost`);
  return wrong;
}

function grouped<T>(items: readonly T[], keyOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) groups.set(keyOf(item), [...(groups.get(keyOf(item)) ?? []), item]);
  return groups;
}
