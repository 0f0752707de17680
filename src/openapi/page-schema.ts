import type { JsonSchema } from '../definition/resource.js';
import { type Html, html, spans, terms } from './html.js';

/** A schema's members, nested members with their path. */
export function schemaMembers(schema: JsonSchema): Html {
  return terms(rows(schema, ''));
}

/** "string or null, date-time, at most 200 characters": the rules for a value. A pattern beside a format adds nothing. */
export function schemaProse(schema: JsonSchema): string {
  const stated = constraints.filter(([keyword]) => keyword in schema && !(keyword === 'pattern' && schema.format));
  return [typeProse(schema), ...stated.map(([keyword, prose]) => prose(schema[keyword]))].filter(Boolean).join(', ');
}

/** A link to the place on the page that describes the schema of a reference; undefined for anything else. */
export function schemaLink(reference: unknown): Html | undefined {
  if (typeof reference !== 'string') return undefined;
  const name = reference.slice(reference.lastIndexOf('/') + 1);
  return html`<a href="#schema-${name}">${name}</a>`;
}

type Row = readonly [Html, Html, readonly Html[]];

const constraints: readonly (readonly [keyword: string, prose: (value: unknown) => string])[] = [
  ['format', (value) => String(value)],
  ['const', (value) => `always ${JSON.stringify(value)}`],
  ['enum', (value) => `one of ${(value as unknown[]).map((each) => JSON.stringify(each)).join(', ')}`],
  ['default', (value) => `default ${JSON.stringify(value)}`],
  ['minimum', (value) => `at least ${value}`],
  ['maximum', (value) => `at most ${value}`],
  ['minLength', (value) => (value === 1 ? 'not empty' : `at least ${value} characters`)],
  ['maxLength', (value) => `at most ${value} characters`],
  ['minItems', (value) => (value === 1 ? 'not empty' : `at least ${value} items`)],
  ['maxItems', (value) => `at most ${value} items`],
  ['pattern', (value) => `matches ${value}`],
];

function rows(schema: JsonSchema, prefix: string): Row[] {
  const required = new Set((schema.required ?? []) as string[]);
  return Object.entries((schema.properties ?? {}) as Record<string, JsonSchema>).flatMap(([name, member]) => {
    const path = `${prefix}${name}`;
    return [row(path, member, required.has(name)), ...nested(member, path)];
  });
}

/** Rows for the inside of a member: an object's members, an array's items, each alternative of a choice. */
function nested(member: JsonSchema, path: string): Row[] {
  const items = member.items as JsonSchema | undefined;
  if (items) return nested(items, `${path}[]`);
  const choice = (member.oneOf ?? member.anyOf) as JsonSchema[] | undefined;
  return choice ? choice.flatMap((each, i) => alternative(each, path, i)) : rows(member, `${path}.`);
}

function alternative(schema: JsonSchema, path: string, index: number): Row[] {
  if (schema.properties === undefined) return [];
  const label = html`<code>${path}</code> ${index === 0 ? 'either' : 'or'}`;
  return [[label, html`object`, spans(String(schema.description ?? ''))], ...rows(schema, `${path}.`)];
}

function row(path: string, schema: JsonSchema, required: boolean): Row {
  const [example] = (schema.examples ?? []) as unknown[];
  const shown = example === undefined ? [] : [html` Example: <code>${JSON.stringify(example)}</code>.`];
  return [
    html`<code>${path}</code>`,
    html`${required ? '' : 'optional, '}${schemaLink(schema.$ref) ?? schemaProse(schema)}`,
    [...spans(String(schema.description ?? '')), ...shown],
  ];
}

function typeProse(schema: JsonSchema): string {
  const items = schema.items as JsonSchema | undefined;
  if (typeof items?.$ref === 'string') return `array of ${items.$ref.split('/').at(-1)}`;
  if (items) return `array of ${typeProse(items)}`;
  if (schema.oneOf || schema.anyOf) return 'one of several';
  if (Array.isArray(schema.type)) return schema.type.join(' or ');
  if (typeof schema.type === 'string') return schema.type;
  return schema.const === undefined ? 'any JSON' : '';
}
