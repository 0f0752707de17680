import { redactionOf } from '../definition/compiled.js';
import { type Resource, usesCodecModule } from '../definition/resource.js';
import { type DecodeFunction, loadCodecModule } from '../projection/codec.js';
import { parseKeyring } from '../projection/keyring.js';
import type { ProjectionOptions } from '../projection/redact.js';
import type { Settings } from '../settings.js';
import { type Item, verdict } from './finding.js';

/** The projection that the settings describe, null when CODEC_MODULE cannot be loaded, and the finding about the module where there is one. */
export async function checkedProjection(
  settings: Settings,
  resources: readonly Resource[],
): Promise<{ projection: ProjectionOptions | null; items: Item[] }> {
  const { decode, items } = await codecModule(settings, resources);
  const usable = items.every(({ level }) => level === 'ok');
  return { projection: usable ? projectionOf(settings, resources, decode) : null, items };
}

/** Loads the module of CODEC_MODULE, where it is set or a codec needs it. */
async function codecModule(
  { codecModule: path }: Settings,
  resources: readonly Resource[],
): Promise<{ decode?: DecodeFunction | undefined; items: Item[] }> {
  const users = resources.filter(usesCodecModule).map(({ name }) => name);
  if (path === '' && users.length === 0) return { items: [] };
  if (path === '')
    return { items: [verdict('codec_module', [`CODEC_MODULE is not set, and codecs of ${users.join(', ')} need it`])] };
  return loadCodecModule(path).then(
    (decode) => ({ decode, items: [verdict('codec_module', [], `${path} is loaded.`)] }),
    (error: Error) => ({ items: [verdict('codec_module', [`CODEC_MODULE: ${error.message}`])] }),
  );
}

function projectionOf(
  settings: Settings,
  resources: readonly Resource[],
  decode: DecodeFunction | undefined,
): ProjectionOptions {
  return {
    keyring: parseKeyring(settings.dataKeys || '{}'),
    legacy: settings.decodeLegacy,
    decrypt: 'native',
    reportMismatch: () => undefined,
    redaction: redactionOf(resources),
    decode,
  };
}
