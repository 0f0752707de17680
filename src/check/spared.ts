import type { CheckResult } from '../postgres/probe.js';
import { type Finding, failure, found, type Item, titleOf, verdict } from './finding.js';

/** The setting that names a server: REPLICA_URLS or PRIMARY_URLS. */
export type ServerKind = 'replica' | 'primary';

/** A server as it was checked. */
export interface CheckedServer {
  readonly kind: ServerKind;
  /** Its place in the setting, from 0. */
  readonly at: number;
  /** Such as "replica 1". */
  readonly name: string;
  /** The name with the address. */
  readonly where: string;
  /** System identifier of its cluster; undefined: it did not answer. */
  readonly system: string | undefined;
  readonly items: readonly Item[];
}

/** The first primary that answered, else the first replica. */
function referenceOf(servers: readonly CheckedServer[]): CheckedServer | undefined {
  const answered = servers.filter(({ system }) => system !== undefined);
  return answered.find(({ kind }) => kind === 'primary') ?? answered[0];
}

/** The servers of another cluster than the primary, or than the first replica where no primary answers. */
export function strangersOf(servers: readonly CheckedServer[]): ReadonlySet<CheckedServer> {
  const reference = referenceOf(servers)?.system;
  return new Set(servers.filter(({ system }) => system !== undefined && system !== reference));
}

/**
 * Checks that all servers have the same history: a cluster keeps the system identifier that initdb gave it (pg_control_system()). With
 * the primary's identifier `serve` ejects replicas of another cluster; without it, it cannot tell which of them is right.
 */
export function checkCluster(servers: readonly CheckedServer[]): Item {
  const reference = referenceOf(servers);
  const strangers = [...strangersOf(servers)].map(({ name }) => name);
  if (strangers.length === 0) return verdict('cluster', [], `${servers.length} servers of one cluster.`);
  const fault = `${strangers.join(', ')}: another cluster than ${reference?.name}`;
  return reference?.kind === 'primary'
    ? failure('cluster', `${fault}, so no reads go there.`)
    : verdict('cluster', [fault]);
}

/** Answers of other recovery states than that of the setting, which are no fault while another server has that state. */
const otherState: Readonly<Record<ServerKind, string>> = {
  replica: 'It is a primary now: it serves no reads until it is a standby.',
  primary: 'It is a standby now: it takes writes when it is promoted.',
};

/**
 * The findings of the servers. Takes the refusal from the faults of one server while another in the same setting is fine: a wrong
 * password, an unknown database, a promoted or demoted server, another cluster. `serve` starts without the server, and uses it when it
 * becomes good.
 */
export function spared(servers: readonly CheckedServer[], strangers: ReadonlySet<CheckedServer>): Finding[] {
  const isFine = (server: CheckedServer): boolean =>
    !strangers.has(server) &&
    server.items.every(({ code, level }) => level === 'ok' || (code !== 'connection' && code !== 'recovery'));
  const fineKinds = new Set(servers.filter(isFine).map(({ kind }) => kind));
  return servers.flatMap((server) => {
    const { kind, where, items } = server;
    if (isFine(server) || !fineKinds.has(kind)) return items.map((item) => found(where, item));
    const kept = strangers.has(server) ? items.filter(({ code }) => code === 'connection') : items;
    return kept.map((item) => {
      if (item.code === 'recovery' && item.level !== 'ok')
        return found(where, { level: 'ok', code: item.code, object: '', detail: otherState[kind] });
      return found(where, item.code === 'connection' && item.level === 'refused' ? { ...item, level: 'failed' } : item);
    });
  });
}

/**
 * The servers of the setting, counted from 0, that answered no check or not all of it, or belong to another cluster: what is unchecked
 * must be checked before its first use.
 */
export function uncheckedServers(
  kind: ServerKind,
  servers: readonly CheckedServer[],
  strangers: ReadonlySet<CheckedServer>,
): ReadonlyMap<number, CheckResult> {
  const stranger = { refusal: 'it belongs to another cluster', uncheckedViews: new Set<string>() };
  return new Map(
    servers
      .filter((server) => server.kind === kind && (strangers.has(server) || server.items.some(isUnfinished)))
      .map((server) => [server.at, strangers.has(server) ? stranger : checkResult(server.items.filter(isUnfinished))]),
  );
}

/** The server, or the view that the item names, could not be checked. */
function isUnfinished({ code, level }: Item): boolean {
  return code === 'connection' && level !== 'ok';
}

/** The result of the check of a server: its first fault, and the views that could not be checked. */
export function checkResult(items: readonly Item[]): CheckResult {
  const fault = items.find((each) => each.level === 'refused' || (isUnfinished(each) && each.object === ''));
  const views = items.filter((each) => isUnfinished(each) && each.object !== '').map(({ object }) => object);
  const refusal = fault === undefined ? null : `check refuses it: ${titleOf(fault)}: ${fault.detail}`;
  return { refusal, uncheckedViews: new Set(views) };
}
