import { createHash, type KeyObject } from 'node:crypto';
import type { ProjectionOptions } from '../projection/redact.js';
import { codecsInUse, type Resource } from './resource.js';

/** Raise it when a change of the code shows a stored row otherwise: all copies then read it again. */
const projectionRevision = 1;

/**
 * Seed of the versions of a resource's records, 64 bits. It differs when the gateway shows the same row otherwise: other fields, codecs, keys,
 * another CODEC_MODULE, other rules for the log. `all` are the resources whose fields those rules come from.
 */
export function versionSeedOf(resource: Resource, options: ProjectionOptions, all: readonly Resource[]): bigint {
  const { keyring, legacy, moduleText = '' } = options;
  const keys = keyring.ids.map((id) => [id, digestOf((keyring.get(id) as KeyObject).export())]).sort();
  const shown = ({ fields, table, auditEntity, auditFields, auditFieldsOfOthers }: Resource): unknown => [
    fields,
    table,
    [auditEntity, auditFields, auditFieldsOfOthers],
  ];
  const isLog = JSON.stringify(resource.fields).includes('"audit-diff"');
  const parts = [projectionRevision, keys, legacy, moduleText, codecsInUse(resource), shown(resource)];
  return BigInt(`0x${digestOf(JSON.stringify([...parts, isLog ? all.map(shown) : []], withoutProse)).slice(0, 16)}`);
}

/** Leaves descriptions and examples out; a field can have the name of either. */
const withoutProse = (key: string, value: unknown): unknown =>
  (key === 'description' && typeof value === 'string') || key === 'example' ? undefined : value;

const digestOf = (data: string | Buffer): string => createHash('sha256').update(data).digest('hex');
