import { setTimeout as sleep } from 'node:timers/promises';
import { redactionOf } from '../../resource/definition/compiled.js';
import { leaves, placeOf, type Resource, usesCodecModule } from '../../resource/definition/resource.js';
import { loadCodecModule } from '../../resource/projection/codec.js';
import { parseKeyring } from '../../resource/projection/keyring.js';
import type { ProjectionOptions } from '../../resource/projection/redact.js';
import type { Settings } from '../settings.js';
import { failure, type Item, verdict, warning, withFile } from './finding.js';

// Items about settings and definitions, for which no database is asked, and about Redis.

/** The projection that the settings describe, null when CODEC_MODULE cannot be loaded, and the finding about the module where there is one. */
export async function checkedProjection(
  settings: Settings,
  resources: readonly Resource[],
): Promise<{ projection: ProjectionOptions | null; items: Item[] }> {
  const { codecModule: path, dataKeys, decodeLegacy: legacy } = settings;
  const users = resources.filter(usesCodecModule).map(({ name }) => name);
  const projection: ProjectionOptions = {
    keyring: parseKeyring(dataKeys || '{}'),
    legacy,
    redaction: redactionOf(resources),
  };
  const refused = (fault: string) => ({ projection: null, items: [verdict('codec_module', [fault])] });
  if (path === '' && users.length === 0) return { projection, items: [] };
  if (path === '') return refused(`CODEC_MODULE is not set, and codecs of ${users.join(', ')} need it`);
  return loadCodecModule(path).then(
    (decode) => ({ projection: { ...projection, decode }, items: [verdict('codec_module', [], `${path} is loaded.`)] }),
    (error: Error) => refused(`CODEC_MODULE: ${error.message}`),
  );
}

/** Asks Redis as `serve` does, until its first answer: it must accept the login and run the script that counts. */
export async function checkRedis(settings: Settings): Promise<Item> {
  const { redisPeers } = await import('../peers/redis.js'); // only here: a gateway without Redis does not load it
  const peers = redisPeers(settings, 1, () => undefined);
  const deadlineMs = performance.now() + 5000;
  while (/^(not asked yet|no connection)$/.test(peers.redis()?.reason ?? '') && performance.now() < deadlineMs)
    await sleep(20);
  const reason = peers.redis()?.reason;
  peers.close();
  if (reason) return failure('redis', `It does not answer as it must: ${reason}.`);
  return verdict('redis', [], 'It answers, accepts the login and runs scripts that write.');
}

/** The beginning of a description that marks a guess. */
export const openMark = 'OPEN: ';

/** Warns of the guesses in a definition that the operator has not decided. */
export function checkOpenPoints(resource: Resource): Item[] {
  const { description, name } = resource;
  const described = [
    ['/description', description] as const,
    ...leaves(resource).map(({ field, path }) => [`${placeOf(path)}/description`, field.description] as const),
  ];
  const points = described
    .filter(([, text]) => text.startsWith(openMark))
    .map(([at, text]) => `${at}: ${text.slice(openMark.length).replace(/[.]$/, '')}`);
  return points.length === 0 ? [] : [warning('open_points', `${withFile(points, resource).join('; ')}.`, name)];
}
