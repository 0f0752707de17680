import type { Resource } from '../definition/resource.js';
import { type ApiResponse, component, type OpenApiDocument, resolve } from './document.js';
import { errorParts } from './errors.js';
import { expand, fill, mapValues, readData, readText, type Sets, type Values } from './template.js';
import { commonValues, filterValues, type OpenApiOptions, resourceValues } from './values.js';

/** The header components, sets of their names, and the header of each component that has another name. */
type HeaderData = { readonly headers: object; readonly sets: Sets; readonly names: Readonly<Record<string, string>> };

/**
 * The OpenAPI 3.1 description of the API: the templates in config/openapi, filled from the resource definitions, the
 * settings and the table of problems. The gateway makes it at the first request for it.
 */
export function openapi(resources: readonly Resource[], options: OpenApiOptions): OpenApiDocument {
  const values = commonValues(resources, options);
  const { headers, names, sets } = fill(readData('headers.json'), values) as HeaderData;
  // A later component replaces an earlier component of the same header.
  const reference = (name: string) => [names[name] ?? name, component('headers', name)];
  const headersOf = (set: readonly string[]): ApiResponse['headers'] =>
    Object.fromEntries(expand(['every', ...set], sets).map(reference));
  const errors = errorParts(headersOf);
  const common: Values = {
    ...values,
    introduction: fill(readText('introduction.md').trim(), values),
    headers,
    ...prefixed('headers', mapValues(sets, headersOf)),
    ...prefixed('errors', errors.references),
  };
  const parts = resources.map((resource) =>
    resourcePart(resource, { ...common, ...resourceValues(resource, options) }),
  );
  const merged = (kind: keyof ResourcePart): object => Object.assign({}, ...parts.map((part) => part[kind]));
  const document = fill(readData('document.json'), {
    ...common,
    tags: parts.map(({ tag }) => tag),
    hasSync: resources.some(({ sync }) => sync !== undefined),
    paths: merged('paths'),
    schemas: merged('schemas'),
    parameters: merged('parameters'),
    responses: { ...merged('responses'), ...errors.components },
  });
  return withUsedComponents(document as OpenApiDocument);
}

type ResourcePart = Readonly<Record<'tag' | 'paths' | 'schemas' | 'parameters' | 'responses', object>>;

function resourcePart({ name, filters }: Resource, values: Values): ResourcePart {
  const { filter: filterTemplate, ...template } = readData('resource.json') as Record<string, object>;
  const parameters = Object.entries(filters).map(([filter, each]) => [
    `${name}.${filter}`,
    fill(filterTemplate, { filter, ...filterValues(each, String(values.timeZone)) }),
  ]);
  return { ...(fill(template, values) as ResourcePart), parameters: Object.fromEntries(parameters) };
}

function prefixed(prefix: string, values: Values): Values {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [`${prefix}.${name}`, value]));
}

/**
 * The document with the components that its operations use. Components that only `x-other-responses` uses are written out
 * there, because tools do not follow references from extensions and report such components as unused.
 */
function withUsedComponents(document: OpenApiDocument): OpenApiDocument {
  const { 'x-other-responses': other, ...rest } = document;
  const used = new Set(JSON.stringify(rest).match(/(?<="\$ref":")[^"]+/g));
  const writtenOut = (value: unknown): unknown => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
    const isUnused = '$ref' in value && !used.has(String(value.$ref));
    return isUnused ? writtenOut(resolve(document, value)) : mapValues(value as Values, writtenOut);
  };
  const components = Object.entries(document.components).map(([kind, members]) => {
    const kept = Object.entries(members).filter(([name]) => used.has(`#/components/${kind}/${name}`));
    return [kind, kind === 'securitySchemes' ? members : Object.fromEntries(kept)];
  });
  const smaller = { ...rest, components: Object.fromEntries(components), 'x-other-responses': writtenOut(other) };
  const isDone = JSON.stringify(smaller) === JSON.stringify(document);
  return isDone ? document : withUsedComponents(smaller as OpenApiDocument);
}
