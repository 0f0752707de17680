import type { CheckResult } from '../postgres/probe.js';
import { type Finding, failure, found, type Item, titleOf, verdict } from './finding.js';

/** The servers of another cluster than the primary, or than the first replica where no primary answers. */
export function strangersOf(systems: ReadonlyMap<string, string>): ReadonlySet<string> {
  const reference = systems.get(referenceOf(systems));
  return new Set([...systems].filter(([, system]) => system !== reference).map(([name]) => name));
}

/** "primary" comes before "replica 1". */
function referenceOf(systems: ReadonlyMap<string, string>): string {
  return [...systems.keys()].sort()[0] ?? '';
}

/**
 * Checks that all servers have the same history: a cluster keeps the system identifier that initdb gave it (pg_control_system()). With
 * the primary's identifier `serve` ejects replicas of another cluster; without it, it cannot tell which of them is right.
 */
export function checkCluster(systems: ReadonlyMap<string, string>): Item {
  const reference = referenceOf(systems);
  const strangers = [...strangersOf(systems)];
  if (strangers.length === 0) return verdict('cluster', [], `${systems.size} servers of one cluster.`);
  const fault = `${strangers.sort().join(', ')}: another cluster than ${reference}`;
  return reference.startsWith('primary')
    ? failure('cluster', `${fault}, so no reads go there.`)
    : verdict('cluster', [fault]);
}

/** The setting that names a server: REPLICA_URLS or PRIMARY_URLS. */
export type ServerKind = 'replica' | 'primary';

/** Answers of other recovery states than that of the setting, which are no fault while another server has that state. */
const otherState: Readonly<Record<ServerKind, string>> = {
  replica: 'It is a primary now: it serves no reads until it is a standby.',
  primary: 'It is a standby now: it takes writes when it is promoted.',
};

/**
 * Takes the refusal from the faults of one server while another in the same setting is fine: a wrong password, an unknown
 * database, a promoted or demoted server, another cluster. `serve` starts without the server, and uses it when it becomes good.
 */
export function spared(findings: readonly Finding[], strangers: ReadonlySet<string>): Finding[] {
  const isFine = (where: string): boolean =>
    !strangers.has(nameOf(where)) && ownFaults(findings, where).length === 0 && kindOf(where) !== undefined;
  const fineKinds = new Set(findings.filter(({ where }) => isFine(where)).map(({ where }) => kindOf(where)));
  return findings.flatMap((finding) => {
    const { where, code, level, detail } = finding;
    if (isFine(where) || !fineKinds.has(kindOf(where))) return [finding];
    if (strangers.has(nameOf(where))) return code === 'connection' ? [finding] : [];
    if (code === 'recovery' && level !== 'ok')
      return [found(where, { level: 'ok', code, object: '', detail: otherState[kindOf(where) as ServerKind] })];
    return [
      code === 'connection' && level === 'refused'
        ? found(where, { level: 'failed', code, object: '', detail })
        : finding,
    ];
  });
}

/**
 * The servers of the setting, counted from 0, that answered no check or not all of it, or belong to another cluster: what is unchecked
 * must be checked before its first use.
 */
export function uncheckedServers(
  kind: ServerKind,
  findings: readonly Finding[],
  strangers: ReadonlySet<string>,
): ReadonlyMap<number, CheckResult> {
  const unchecked = findings.filter(
    (finding) => kindOf(finding.where) === kind && (strangers.has(nameOf(finding.where)) || isUnfinished(finding)),
  );
  const resultOf = (where: string): CheckResult =>
    strangers.has(nameOf(where))
      ? { refusal: 'it belongs to another cluster', uncheckedViews: new Set() }
      : checkResult(findings.filter((finding) => finding.where === where && isUnfinished(finding)));
  return new Map(unchecked.map(({ where }) => [Number(/\d+/.exec(nameOf(where))?.[0] ?? 1) - 1, resultOf(where)]));
}

/** The server, or the view that the finding names, could not be checked. */
function isUnfinished({ code, level }: Finding): boolean {
  return code === 'connection' && level !== 'ok';
}

/** The result of the check of a server: its first fault, and the views that could not be checked. */
export function checkResult(findings: readonly Finding[]): CheckResult {
  const fault = findings.find((each) => each.level === 'refused' || (isUnfinished(each) && each.object === ''));
  const views = findings.filter((each) => isUnfinished(each) && each.object !== '').map(({ object }) => object);
  const refusal = fault === undefined ? null : `check refuses it: ${titleOf(fault)}: ${fault.detail}`;
  return { refusal, uncheckedViews: new Set(views) };
}

/** The faults that make a server unable to do its work now. */
function ownFaults(findings: readonly Finding[], where: string): Finding[] {
  return findings.filter(
    (finding) => finding.where === where && /^(connection|recovery)$/.test(finding.code) && finding.level !== 'ok',
  );
}

/** "replica 1 (host:5432/app)" → "replica 1". */
function nameOf(where: string): string {
  return where.replace(/ \(.*/, '');
}

function kindOf(where: string): ServerKind | undefined {
  return /^(replica|primary)\b/.exec(where)?.[0] as ServerKind | undefined;
}
