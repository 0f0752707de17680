import { failure, type Item, verdict } from './finding.js';

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
