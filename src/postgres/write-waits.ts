import { applicationName } from './connection.js';
import type { TextRow } from './row.js';
import { prepared } from './statement.js';

// The causes for which writes wait, as far as the writer's login may see. docs/operate/troubleshooting.md has the query for an operator.

/** Backends of this login, also of other gateways; the last of those that hold a lock up is the cause of the others. */
export const waitsStatement = prepared(
  'write-waits',
  `select pg_backend_pid(), pid, case when state = 'active' then extract(epoch from clock_timestamp() - query_start) end,
      case when wait_event = 'SyncRep' then 'sync' when wait_event_type = 'Lock' then 'lock' else 'work' end,
      relation::regclass, holder
    from pg_stat_activity waiting left join lateral (
      select relation from pg_locks where pg_locks.pid = waiting.pid and not granted limit 1) wanted on true
    left join lateral (
      with recursive held (pid, depth) as (
        select unnest(pg_blocking_pids(waiting.pid)), 1 where waiting.wait_event_type = 'Lock'
        union select unnest(pg_blocking_pids(pid)), depth + 1 from held where depth < 5)
      select concat_ws(', ', 'process ' || pid, 'role ' || usename, nullif(application_name, '')) as holder
      from held join pg_stat_activity using (pid) order by depth desc limit 1) cause on true
    where usename = current_user and application_name = '${applicationName}' and pid <> pg_backend_pid()`,
);

/** By the last look at the primary. */
export interface WriteWaits {
  /** The gateway's backends; null behind a pooler, which gives other numbers. */
  readonly pids: ReadonlySet<number> | null;
  /** The cause for which writes have waited a second. */
  readonly sentence?: string;
}

type WaitKind = 'sync' | 'lock' | 'work';

/** In the order in which one is the cause of the others. */
const sentences: Readonly<Record<WaitKind, (relation: string | null, holder: string | null) => string>> = {
  sync: () => 'commits wait for a synchronous standby: start it, or take it out of synchronous_standby_names',
  lock: (relation, holder) =>
    `for a lock${relation ? ` of ${relation}` : ' of a row'} that ${holder ?? 'another process'} holds`,
  work: () => 'a statement runs: look at the triggers of its table, and at its plan',
};

export function writeWaitsOf(rows: readonly TextRow[], announcedPid: number | null): WriteWaits {
  const isPooled = rows.some(([asking]) => Number(asking) !== announcedPid);
  const pids = isPooled ? null : new Set(rows.map(([, pid]) => Number(pid)));
  const long = rows.filter(([, , seconds]) => Number(seconds ?? 0) >= 1);
  for (const kind of Object.keys(sentences) as WaitKind[]) {
    const alike = long.filter((row) => row[3] === kind);
    const [longest] = alike.sort((a, b) => Number(b[2]) - Number(a[2]));
    if (longest === undefined) continue;
    const [, , seconds, , relation = null, holder = null] = longest;
    const since = `${alike.length} of the gateway's statements, the longest ${Math.round(Number(seconds))} s`;
    return { pids, sentence: `${sentences[kind](relation, holder)} (${since})` };
  }
  return { pids };
}
