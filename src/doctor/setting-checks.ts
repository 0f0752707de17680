import { wallKeyAdvice } from '../base/wall-key.js';
import { makeRedaction } from '../resource/compiled.js';
import { type Resource, usesCodecModule } from '../resource/definition/resource.js';
import { loadCodecModule } from '../resource/projection/codec.js';
import { parseKeyring } from '../resource/projection/keyring.js';
import type { ProjectionOptions } from '../resource/projection/redact.js';
import type { Settings } from '../settings.js';
import { faultIf, type Item, sumUp } from './finding.js';

/** `projection` is null when CODEC_MODULE cannot be loaded. */
export interface InspectionInput {
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
  const refused = (fault: string) => ({ projection: null, items: [sumUp('codec_module', [fault])] });
  if (path === '' && users.length === 0) return { projection, items: [] };
  if (path === '') return refused(`CODEC_MODULE is not set, and codecs of ${users.join(', ')} need it`);
  return loadCodecModule(path).then(
    (decode) => ({ projection: { ...projection, decode }, items: [sumUp('codec_module', [], `${path} is loaded.`)] }),
    (error: Error) => refused(`CODEC_MODULE: ${error.message}`),
  );
}

/** Checks that there is a key: without one no workspace has rows. */
export function checkWallKey({ wallKey }: Settings): Item {
  const fault = `WALL_KEY is not set, without which the database shows no record: ${wallKeyAdvice}, and run \`migrate\` with it`;
  return sumUp('wall_key', faultIf(wallKey === '', fault), 'WALL_KEY is set.');
}
