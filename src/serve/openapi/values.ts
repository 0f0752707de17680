import { getProblemType, problems } from '../../base/errors.js';
import { dateSchema, getType, timestampSchema } from '../../resource/definition/field-types.js';
import { type Field, type Leaf, listLeaves, type Resource } from '../../resource/definition/resource.js';
import type { Settings } from '../../settings.js';
import type { TemplateValues } from './texts.js';

const bounds = ['perPageDefault', 'perPageMax', 'skipRowsMax', 'rateLimitPerMinute', 'writesPerMinute'] as const;
const texts = ['publicUrl', 'apiContact', 'timeZone'] as const;
/** Settings that the document shows, or that decide what it describes. */
export const documentSettings = [...texts, ...bounds, 'primaryUrls', 'basicAuth', 'bodyBytesMax'] as const;

export interface OpenApiOptions extends Pick<Settings, (typeof documentSettings)[number]> {
  readonly version: string;
}

export const apiTitle = 'Workspace data API';

export function makeApiIndex(resources: readonly Resource[], { version, publicUrl }: OpenApiOptions) {
  const self = `${publicUrl}/api/v1`;
  const lists = resources.map(({ name }) => [name, `${self}/${name}`]);
  const links = { self, openapi: `${self}/openapi.json`, ...Object.fromEntries(lists) };
  return { name: apiTitle, version, links };
}

/** Makes the values for the texts and the components in config/openapi. */
export function makeDocumentValues(resources: readonly Resource[], options: OpenApiOptions): TemplateValues {
  const { version, publicUrl, rateLimitPerMinute, writesPerMinute, perPageMax, perPageDefault, skipRowsMax } = options;
  const written = resources.filter((resource) => isWritable(resource, options)).map(({ name }) => name);
  const writes = written.length === 0 ? '' : `, and guarded writes (${written.join(', ')})`;
  const isLimited = written.length > 0 && writesPerMinute > 0;
  return {
    version,
    rateLimitPerMinute,
    perPageMax,
    skipRowsMax,
    dateSchema,
    timestampSchema,
    writes,
    base: `${publicUrl || 'https://HOST'}/api/v1`,
    index: makeApiIndex(resources, options),
    perPageDefault: Math.min(perPageDefault, perPageMax),
    requestsLeft: rateLimitPerMinute - 1,
    problemCodes: Object.keys(problems),
    problemTypes: Object.keys(problems).map(getProblemType),
    listNames: resources.map(({ name }) => name).join(', '),
    listName: resources[0]?.name as string,
    writtenName: written[0] ?? '',
    writeLimit: isLimited ? `, of which at most ${writesPerMinute} writes` : '',
  };
}

/** Returns false without a primary: the gateway then has no writes. */
export function isWritable({ write }: Resource, { primaryUrls }: OpenApiOptions): boolean {
  return write !== undefined && primaryUrls !== '';
}

/** Splits "Help desk, help@example.com": the parts differ by their form. */
export function parseContact(text: string): Readonly<Record<string, string>> {
  return Object.fromEntries(text.split(/, */).map((piece) => [nameContact(piece), piece]));
}

function nameContact(piece: string): 'url' | 'email' | 'name' {
  if (piece.includes('://')) return 'url';
  return piece.includes('@') ? 'email' : 'name';
}

type Example = Readonly<Record<string, unknown>>;

/** Uses the fields' own examples, or a value per type. The PATCH changes one field and clears another. */
export function makeExamples(resource: Resource): Record<`${'record' | 'create' | 'patch'}Example`, Example> {
  const all = listLeaves(resource);
  const writable = all.filter(({ field }) => field.write);
  const changed = writable.findIndex((leaf) => leaf.field.example !== undefined);
  const cleared = writable.slice(changed + 1).find(({ field }) => field.nullable);
  const patched = [...writable.slice(changed, changed + 1), ...(cleared ? [{ ...cleared, value: null }] : [])];
  return { recordExample: makeExample(all), createExample: makeExample(writable), patchExample: makeExample(patched) };
}

function makeExample(members: readonly (Leaf & { readonly value?: null })[]): Example {
  const record: Record<string, unknown> = {};
  for (const { path, field, value = chooseExample(field) } of members) {
    const [name, inner] = path as [string, string | undefined];
    record[name] = inner === undefined ? value : { ...(record[name] as Example), [inner]: value };
  }
  return record;
}

function chooseExample({ example, values, nullable, type }: Field): unknown {
  return example ?? values?.[0] ?? (nullable && type === 'text' ? null : getType(type).example);
}
