import { failure, type Item, verdict } from './finding.js';

/**
 * Checks that all servers have the same history: a cluster keeps the system identifier that initdb gave it (pg_control_system()). With
 * the primary's identifier `serve` ejects replicas of another cluster; without it, it cannot tell which of them is right.
 */
export function checkCluster(systems: ReadonlyMap<string, string>): Item {
  const [reference = ''] = [...systems.keys()].sort(); // "primary" comes before "replica 1"
  const strangers = [...systems].filter(([, system]) => system !== systems.get(reference)).map(([name]) => name);
  if (strangers.length === 0) return verdict('cluster', [], `${systems.size} servers of one cluster.`);
  const fault = `${strangers.sort().join(', ')}: another cluster than ${reference}`;
  return reference === 'primary' ? failure('cluster', `${fault}, so no reads go there.`) : verdict('cluster', [fault]);
}
