import { wallKeyAdvice } from '../base/wall-key.js';
import { makeRedaction } from '../resource/compiled.js';
import { type Resource, usesCodecModule } from '../resource/definition/resource.js';
import { loadCodecModule } from '../resource/projection/codec.js';
import { parseKeyring } from '../resource/projection/keyring.js';
import type { ProjectionOptions } from '../resource/projection/redact.js';
import type { Settings } from '../settings.js';
import { type Item, makeItem } from './finding.js';

/** `projection` is null when CODEC_MODULE cannot be loaded. */
export interface CheckInput {
  readonly settings: Settings;
  readonly resources: readonly Resource[];
  readonly projection: ProjectionOptions | null;
}

export async function checkProjection(
  settings: Settings,
  resources: readonly Resource[],
): Promise<{ projection: ProjectionOptions | null; items: Item[] }> {
  const { codecModule: path, dataKeys, decodeLegacy: legacy } = settings;
  const users = resources.filter(usesCodecModule).map(({ name }) => name);
  const projection: ProjectionOptions = {
    keyring: parseKeyring(dataKeys || '{}'),
    legacy,
    redaction: makeRedaction(resources),
  };
  const refuse = (fault: string) => ({ projection: null, items: [makeItem('refused', 'codec_module', `${fault}.`)] });
  if (path === '' && users.length === 0) return { projection, items: [] };
  if (path === '') return refuse(`CODEC_MODULE is not set, and codecs of ${users.join(', ')} need it`);
  const items = [makeItem('ok', 'codec_module', `${path} is loaded.`)];
  return loadCodecModule(path).then(
    (decode) => ({ projection: { ...projection, decode }, items }),
    (error: Error) => refuse(`CODEC_MODULE: ${error.message}`),
  );
}

/** Checks that there is a key: without one no workspace has rows. */
export function checkWallKey({ wallKey }: Settings): Item {
  const detail = `WALL_KEY is not set, without which the database shows no record: ${wallKeyAdvice}, and run \`migrate\` with it.`;
  return wallKey === '' ? makeItem('refused', 'wall_key', detail) : makeItem('ok', 'wall_key', 'WALL_KEY is set.');
}
