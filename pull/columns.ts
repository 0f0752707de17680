import type { Column } from './destination.js';

type Schema = { readonly [keyword: string]: unknown };
/** An OpenAPI document of the gateway, parsed. */
export type OpenApiDocument = Schema;

/** The resources of an OpenAPI document that can be synced, each with the columns of its records. */
export function syncedResources(document: Schema): Map<string, readonly Column[]> {
  const paths = Object.keys(document.paths ?? {}).flatMap((path) => /^\/sync\/([\w-]+)$/.exec(path)?.[1] ?? []);
  return new Map(paths.map((resource) => [resource, columnsOf(document, resource)]));
}

function columnsOf(document: Schema, resource: string): readonly Column[] {
  const page = at(document, [
    'paths',
    `/sync/${resource}`,
    'get',
    'responses',
    '200',
    'content',
    'application/json',
    'schema',
  ]);
  const record = at(document, ['properties', 'data', 'items'], page);
  const members = at(document, ['properties'], record) as Record<string, Schema>;
  return Object.entries(members).map(([name, schema]) => ({ name, type: name === 'id' ? 'text' : typeOf(schema) }));
}

/** The member of a schema at a path; references into the document are followed. */
function at(document: Schema, path: readonly string[], from: Schema = document): Schema {
  const follow = (value: Schema): Schema =>
    typeof value.$ref === 'string' ? at(document, value.$ref.split('/').slice(1)) : value;
  return follow(path.reduce((value, step) => follow(value)[step] as Schema, from));
}

/** The type of a column; objects and arrays are jsonb, as is anything without a single type. */
function typeOf({ type, format }: Schema): string {
  const [single, ...others] = [type].flat().filter((each) => each !== 'null');
  if (others.length > 0) return 'jsonb';
  if (single === 'string') return format === 'date-time' ? 'timestamptz' : format === 'date' ? 'date' : 'text';
  return (
    ({ integer: 'bigint', number: 'numeric', boolean: 'boolean' } as Record<string, string>)[String(single)] ?? 'jsonb'
  );
}
