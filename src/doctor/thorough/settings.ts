import { setTimeout as sleep } from 'node:timers/promises';
import { getPlace, listLeaves, openPrefix, type Resource } from '../../resource/definition/resource.js';
import type { Settings } from '../../settings.js';
import { type Item, nameFile, sumUp } from '../finding.js';

/** Waits for the first answer of Redis: it must accept the login and run the script. */
export async function checkRedis(settings: Settings): Promise<Item> {
  const { connectRedisPeers } = await import('../../serve/peers/redis.js'); // only here: a gateway without Redis does not load it
  const peers = connectRedisPeers(settings, 1, () => undefined);
  const deadlineMs = performance.now() + 5000;
  const isOpen = (): boolean => (peers.redis() ?? { reason: 'no connection' }).reason === 'no connection';
  while (isOpen() && performance.now() < deadlineMs) await sleep(20);
  const reason = (peers.redis() ?? { reason: 'no answer' }).reason;
  peers.close();
  const faults = reason ? [`It does not answer as it must: ${reason}`] : [];
  return sumUp('redis', faults, 'It answers, accepts the login and runs scripts that write.', '', 'failed');
}

export function checkOpenPoints(resource: Resource): Item[] {
  const { description, name } = resource;
  const described = [
    ['/description', description] as const,
    ...listLeaves(resource).map(({ field, path }) => [`${getPlace(path)}/description`, field.description] as const),
  ];
  const points = described
    .filter(([, text]) => text.startsWith(openPrefix))
    .map(([at, text]) => `${at}: ${text.slice(openPrefix.length).replace(/[.]$/, '')}`);
  return points.length === 0 ? [] : [sumUp('open_points', nameFile(points, resource), '', name, 'warning')];
}
