import { problems, problemType } from '../../base/errors.js';
import { dateSchema, fieldType, timestampSchema } from '../../resource/definition/field-types.js';
import { type Filter, filterForm, filterKind, filterRanges } from '../../resource/definition/filter-kinds.js';
import {
  createSchema,
  patchSchema,
  recordSchema,
  versionedSchema,
  writeScopeSchema,
} from '../../resource/definition/record-schema.js';
import { type Field, type Leaf, leaves, type Resource } from '../../resource/definition/resource.js';
import type { Settings } from '../settings.js';
import { bodyDepthMax } from '../write/strict-json.js';
import { component } from './document.js';
import type { Values } from './template.js';

/** The settings that the document shows. */
export const documentSettings = [
  ...(['publicUrl', 'primaryUrls', 'apiContact', 'basicAuth', 'timeZone', 'perPageDefault', 'perPageMax'] as const),
  ...(['skipRowsMax', 'rateLimitPerMinute', 'writesPerMinute', 'bodyBytesMax'] as const),
] as const;

export interface OpenApiOptions extends Pick<Settings, (typeof documentSettings)[number]> {
  readonly version: string;
}

const apiTitle = 'Workspace data API';

export function apiIndex(resources: readonly Resource[], { version, publicUrl }: OpenApiOptions) {
  const self = `${publicUrl}/api/v1`;
  const lists = resources.map(({ name }) => [name, `${self}/${name}`]);
  const links = { self, openapi: `${self}/openapi.json`, ...Object.fromEntries(lists) };
  return { name: apiTitle, version, links };
}

export function commonValues(resources: readonly Resource[], options: OpenApiOptions): Values {
  const { version, publicUrl, apiContact, timeZone, rateLimitPerMinute, bodyBytesMax, perPageMax } = options;
  const written = resources.filter((resource) => isWritable(resource, options)).map(({ name }) => name);
  return {
    version,
    title: apiTitle,
    basicAuth: options.basicAuth,
    timeZone,
    rateLimitPerMinute,
    perPageMax,
    skipRowsMax: options.skipRowsMax,
    publicUrl,
    serverDescription: publicUrl
      ? 'Version 1 of the API.'
      : 'Version 1, on the host from which you read this description. The operator names the host by PUBLIC_URL.',
    base: `${publicUrl || 'https://HOST'}/api/v1`,
    index: apiIndex(resources, options),
    contact: apiContact === '' ? undefined : contactOf(apiContact),
    perPageDefault: Math.min(options.perPageDefault, perPageMax),
    requestsLeft: rateLimitPerMinute - 1,
    bodyLimit: bodyBytesMax % 1024 === 0 ? `${bodyBytesMax / 1024} KiB` : `${bodyBytesMax} bytes`,
    bodyDepthMax,
    problemCodes: Object.keys(problems),
    problemTypes: Object.keys(problems).map(problemType),
    dateSchema,
    timestampSchema,
    listNames: resources.map(({ name }) => name).join(', '),
    listName: resources[0]?.name,
    writtenName: written[0],
    writeLimitProse:
      written.length === 0 || options.writesPerMinute === 0
        ? ''
        : `, of which at most ${options.writesPerMinute} writes`,
    writesProse: written.length === 0 ? '' : `, and guarded writes (${written.join(', ')})`,
  };
}

export function resourceValues(resource: Resource, options: OpenApiOptions): Values {
  const { name, record, description, detail, version } = resource;
  const writable = isWritable(resource, options);
  const [days] = filterRanges(resource.filters);
  return {
    name,
    tagName: spaced(name),
    record,
    Name: capital(name),
    Record: capital(record),
    description,
    detail,
    version,
    writable,
    sync: resource.sync !== undefined,
    order: orderProse(resource),
    period: [days?.lower ?? [], days?.upper ?? []]
      .flat()
      .map((filter) => component('parameters', `${name}.${filter}`))
      .concat(days ? component('parameters', 'by') : []),
    periodProse: days
      ? ` With \`${days.lower}\` and \`${days.upper}\` it counts and hashes the records of that period, with \`by=month\` month by month: a month whose hash differs from an earlier one has records that were added, changed, moved or deleted.`
      : '',
    members: Object.keys(resource.fields),
    filters: Object.keys(resource.filters).map((filter) => component('parameters', `${name}.${filter}`)),
    recordSchema: recordSchema(resource),
    ...examplesOf(resource),
    versionedSchema: resource.sync && versionedSchema(resource),
    syncExample: { ...examplesOf(resource).recordExample, syncVersion: '9f2c4e6a81b3d507' },
    createSchema: writable ? createSchema(resource) : undefined,
    patchSchema: writable ? patchSchema(resource) : undefined,
    writeScopeSchema: writable ? writeScopeSchema(resource) : undefined,
  };
}

export function filterValues(filter: Filter, resource: Resource, timeZone: string): Values {
  const takesDay = filter.type === 'timestamp' && filterKind(filter.kind).takesDays;
  const day = takesDay ? ` A day in time zone ${timeZone}, daylight saving included.` : '';
  const { values } = leaves(resource).find(({ field }) => field.column === filter.column)?.field ?? {};
  const listed = values === undefined ? '' : ` One of: ${values.join(', ')}.`;
  const { schema } = filterForm(filter);
  const filterExplode = schema.type === 'array' ? false : undefined;
  return { filterDescription: `${filter.description}${day}${listed}`, filterSchema: schema, filterExplode };
}

/** Without a primary the gateway has no writes. */
function isWritable({ write }: Resource, { primaryUrls }: OpenApiOptions): boolean {
  return write !== undefined && primaryUrls !== '';
}

/** "`createdAt`, `id`". */
function orderProse(resource: Resource): string {
  const paths = new Map(leaves(resource).map(({ field, path }) => [field.column, path.join('.')]));
  return resource.order.map(({ column }) => `\`${paths.get(column) ?? column}\``).join(', ');
}

/** "Help desk, help@example.com": the parts differ by their form. */
function contactOf(text: string): Readonly<Record<string, string>> {
  const memberOf = (part: string): string => (part.includes('://') ? 'url' : part.includes('@') ? 'email' : 'name');
  return Object.fromEntries(text.split(/, */).map((part) => [memberOf(part), part]));
}

/** "serviceVisits" and "service-visits" → "ServiceVisits". */
function capital(name: string): string {
  return name.replace(/(?:^|-)(.)/g, (_, letter: string) => letter.toUpperCase());
}

/** "serviceVisits" and "service-visits" as "Service visits". */
function spaced(name: string): string {
  const [first = '', ...others] = name.split(/-|(?=[A-Z])/).map((word) => word.toLowerCase());
  return [capital(first), ...others].join(' ');
}

type Example = Readonly<Record<string, unknown>>;

/** Made of the fields' own examples, or a value per type. The PATCH changes one field and clears another. */
export function examplesOf(resource: Resource): Record<`${'record' | 'create' | 'patch'}Example`, Example> {
  const all = leaves(resource);
  const writable = all.filter(({ field }) => field.write);
  const changed = writable.findIndex((leaf) => leaf.field.example !== undefined);
  const cleared = writable.slice(changed + 1).find(({ field }) => field.nullable);
  const patched = [...writable.slice(changed, changed + 1), ...(cleared ? [{ ...cleared, value: null }] : [])];
  return { recordExample: example(all), createExample: example(writable), patchExample: example(patched) };
}

function example(members: readonly (Leaf & { readonly value?: null })[]): Example {
  const record: Record<string, unknown> = {};
  for (const { path, field, value = exampleOf(field) } of members) {
    const [name, inner] = path as [string, string | undefined];
    record[name] = inner === undefined ? value : { ...(record[name] as Example), [inner]: value };
  }
  return record;
}

function exampleOf({ example, values, nullable, type }: Field): unknown {
  return example ?? values?.[0] ?? (nullable && type === 'text' ? null : fieldType(type).example);
}
