import { readProject } from '../base/paths.js';
import { applicationName } from './connection.js';
import type { TextRow } from './row.js';
import { prepareSql, type Statement } from './statement.js';

export function prepareWaitsStatement(): Statement {
  const question = readProject('sql/catalog/write-waits.sql').replace('{application}', applicationName);
  return prepareSql('write-waits', question);
}

/** The waits that the last look at the primary found. */
export interface WriteWaits {
  /** Backends of the gateway; null if a pooler gives other numbers. */
  readonly pids: ReadonlySet<number> | null;
  /** The cause for which writes have waited a second. */
  readonly sentence?: string;
}

type WaitKind = 'sync' | 'lock' | 'work';

/** The kinds are in the order of cause and effect: a wait of an earlier kind causes waits of the later ones. */
const sentences: Readonly<Record<WaitKind, (relation: string | null, holder: string | null) => string>> = {
  sync: () => 'commits wait for a synchronous standby: start it, or take it out of synchronous_standby_names',
  lock: (relation, holder) =>
    `for a lock${relation ? ` of ${relation}` : ' of a row'} that ${holder ?? 'another process'} holds`,
  work: () => 'a statement runs: look at the triggers of its table, and at its plan',
};

export function getWriteWaits(rows: readonly TextRow[], announcedPid: number | null): WriteWaits {
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
