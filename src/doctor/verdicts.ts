import type { CheckResult } from '../postgres/probe.js';
import { type Finding, getTitle, type Item, makeItem, placeItem, summarizeFaults } from './finding.js';

export type ServerKind = 'replica' | 'primary';

export interface CheckedServer {
  readonly kind: ServerKind;
  readonly at: number;
  readonly name: string;
  readonly where: string;
  /** System identifier by pg_control_system(); undefined: no answer. */
  readonly system: string | undefined;
  readonly items: readonly Item[];
}

/** A primary takes writes without a replica. */
const withoutReplica =
  'This is no replica but a primary, and no replica can be used: reads will be answered 503, writes are served.';

/** Details of a server in the other state, which is no fault while another server has the right state. */
const otherState: Readonly<Record<ServerKind, string>> = {
  replica: 'It is a primary now: it serves no reads until it is a standby.',
  primary: 'It is a standby now: it takes writes when it is promoted.',
};

/** Requires one cluster, by the first primary or replica. A server's faults refuse no start while another of its setting is fine. */
export function judgeServers(servers: readonly CheckedServer[]) {
  const answered = servers.filter(({ system }) => system !== undefined);
  const reference = answered.find(({ kind }) => kind === 'primary') ?? answered[0];
  const strangers = answered.filter(({ system }) => system !== reference?.system);
  const isFine = (server: CheckedServer): boolean =>
    !strangers.includes(server) &&
    server.items.every(({ code, level }) => level === 'ok' || !['connection', 'recovery', 'wall_key'].includes(code));
  const fineKinds = new Set(servers.filter(isFine).map(({ kind }) => kind));
  return {
    cluster: answered.length > 1 ? [judgeCluster(answered.length, strangers, reference)] : [],
    findings: servers.flatMap((server) =>
      isFine(server) || !fineKinds.has(server.kind)
        ? placeItems(server, fineKinds.has('primary'))
        : placeSparedItems(server, strangers.includes(server)),
    ),
    unchecked: (kind: ServerKind): ReadonlyMap<number, CheckResult> => {
      const results = servers.flatMap((server): [number, CheckResult][] => {
        const isStranger = strangers.includes(server);
        const result = isStranger ? strangerResult : makeCheckResult(server.items.filter(isUnfinished));
        return server.kind === kind ? [[server.at, result]] : [];
      });
      return new Map(results.filter(([, { refusal, uncheckedViews }]) => refusal !== null || uncheckedViews.size > 0));
    },
    system: reference?.system,
  };
}

function judgeCluster(count: number, strangers: readonly CheckedServer[], reference: CheckedServer | undefined): Item {
  const names = strangers.map(({ name }) => name).join(', ');
  const hasPrimary = reference?.kind === 'primary';
  const fault = `${names}: another cluster than ${reference?.name}${hasPrimary ? ', so no reads go there' : ''}`;
  const whenOk = `${count} servers of one cluster.`;
  const level = hasPrimary ? 'failed' : 'refused';
  return summarizeFaults('cluster', strangers.length > 0 ? [fault] : [], { whenOk, level });
}

/** A primary in place of the only replica keeps reads from being served, and no writes. */
function placeItems({ kind, where, items }: CheckedServer, isPrimaryFine: boolean): Finding[] {
  return items.map((item) => {
    const isPrimary = kind === 'replica' && item.code === 'recovery' && item.level === 'refused';
    return placeItem(where, isPrimary && isPrimaryFine ? makeItem('failed', 'recovery', withoutReplica) : item);
  });
}

/** Refuses no start, because another server of the setting is fine. Of another cluster only the connection matters. */
function placeSparedItems({ kind, where, items }: CheckedServer, isStranger: boolean): Finding[] {
  const kept = isStranger ? items.filter(({ code }) => code === 'connection') : items;
  return kept.map((item) => {
    const { code, level } = item;
    if (code === 'recovery' && level !== 'ok') return placeItem(where, makeItem('ok', code, otherState[kind]));
    return placeItem(where, passingCodes.has(code) && level === 'refused' ? { ...item, level: 'failed' } : item);
  });
}

export const strangerResult: CheckResult = { refusal: 'it belongs to another cluster', uncheckedViews: new Set() };
/** Findings that can end without a person: the server answers, or replays the key that `migrate` stored. */
const passingCodes: ReadonlySet<Item['code']> = new Set(['connection', 'wall_key']);

/** The server, or the view that the item names, could not be checked, or its wall cannot be used yet. */
function isUnfinished({ code, level }: Item): boolean {
  return passingCodes.has(code) && level !== 'ok';
}

export function makeCheckResult(items: readonly Item[]): CheckResult {
  const fault = items.find((each) => each.level === 'refused' || (isUnfinished(each) && each.object === ''));
  const views = items.filter((each) => isUnfinished(each) && each.object !== '').map(({ object }) => object);
  const refusal = fault === undefined ? null : `check refuses it: ${getTitle(fault)}: ${fault.detail}`;
  return { refusal, uncheckedViews: new Set(views) };
}
