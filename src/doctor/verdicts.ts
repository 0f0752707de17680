import type { CheckResult } from '../postgres/probe.js';
import { type Finding, type FindingCode, fail, faultIf, getTitle, type Item, placeItem, sumUp } from './finding.js';

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
export function judge(servers: readonly CheckedServer[]) {
  const answered = servers.filter(({ system }) => system !== undefined);
  const reference = answered.find(({ kind }) => kind === 'primary') ?? answered[0];
  const ofOtherClusters = answered.filter(({ system }) => system !== reference?.system);
  const isFine = (server: CheckedServer): boolean =>
    !ofOtherClusters.includes(server) &&
    server.items.every(({ code, level }) => level === 'ok' || !['connection', 'recovery', 'wall_key'].includes(code));
  const fineKinds = new Set(servers.filter(isFine).map(({ kind }) => kind));
  const [level, end] =
    reference?.kind === 'primary' ? (['failed', ', so no reads go there'] as const) : (['refused', ''] as const);
  const fault = `${ofOtherClusters.map(({ name }) => name).join(', ')}: another cluster than ${reference?.name}${end}`;
  const whenOk = `${answered.length} servers of one cluster.`;
  const cluster = sumUp('cluster', faultIf(ofOtherClusters.length > 0, fault), whenOk, '', level);
  return {
    cluster: answered.length > 1 ? [cluster] : [],
    findings: servers.flatMap((server) => {
      const { kind, where, items } = server;
      if (isFine(server) || !fineKinds.has(kind))
        return items.map((item) => {
          const isPrimary = kind === 'replica' && item.code === 'recovery' && item.level === 'refused';
          return placeItem(where, isPrimary && fineKinds.has('primary') ? fail('recovery', withoutReplica) : item);
        });
      const kept = ofOtherClusters.includes(server) ? items.filter(({ code }) => code === 'connection') : items;
      return kept.map((item): Finding => {
        const { code, level } = item;
        if (code === 'recovery' && level !== 'ok') return placeItem(where, sumUp(code, [], otherState[kind]));
        return placeItem(where, passing.has(code) && level === 'refused' ? { ...item, level: 'failed' } : item);
      });
    }),
    unchecked: (kind: ServerKind): ReadonlyMap<number, CheckResult> => {
      const results = servers.flatMap((server): [number, CheckResult][] => {
        const isStranger = ofOtherClusters.includes(server);
        const result = isStranger ? stranger : makeCheckResult(server.items.filter(isUnfinished));
        return server.kind === kind ? [[server.at, result]] : [];
      });
      return new Map(results.filter(([, { refusal, uncheckedViews }]) => refusal !== null || uncheckedViews.size > 0));
    },
    system: reference?.system,
  };
}

export const stranger: CheckResult = { refusal: 'it belongs to another cluster', uncheckedViews: new Set() };
/** Findings that can end without a person: the server answers, or replays the key that `migrate` stored. */
const passing: ReadonlySet<FindingCode> = new Set(['connection', 'wall_key']);

/** The server, or the view that the item names, could not be checked, or its wall cannot be used yet. */
function isUnfinished({ code, level }: Item): boolean {
  return passing.has(code) && level !== 'ok';
}

export function makeCheckResult(items: readonly Item[]): CheckResult {
  const fault = items.find((each) => each.level === 'refused' || (isUnfinished(each) && each.object === ''));
  const views = items.filter((each) => isUnfinished(each) && each.object !== '').map(({ object }) => object);
  const refusal = fault === undefined ? null : `check refuses it: ${getTitle(fault)}: ${fault.detail}`;
  return { refusal, uncheckedViews: new Set(views) };
}
