import type { JsonSchema } from '../definition/resource.js';
import { type Html, html, spans, table } from './html.js';

/** A schema's members as a table, nested ones with the path to them. */
export function schemaTable(label: string, schema: JsonSchema): Html {
  return table(label, ['Member', 'Type', 'Description'], rows(schema, ''));
}

/** "string or null, date-time, at most 200 characters": what a value must be. A pattern says nothing more where there is a format. */
export function schemaProse(schema: JsonSchema): string {
  const told = constraints.filter(
    ([keyword]) => schema[keyword] !== undefined && !(keyword === 'pattern' && schema.format),
  );
  return [typeProse(schema), ...told.map(([keyword, prose]) => prose(schema[keyword]))].filter(Boolean).join(', ');
}

/** Where the page describes the schema a reference points to. */
export function schemaAnchor(reference: string): string {
  return `schema-${reference.slice(reference.lastIndexOf('/') + 1)}`;
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
  const required = new Set((schema.required as string[] | undefined) ?? []);
  return Object.entries((schema.properties as Record<string, JsonSchema> | undefined) ?? {}).flatMap(
    ([name, member]) => {
      const path = `${prefix}${name}`;
      return [row(path, member, required.has(name)), ...nested(member, path)];
    },
  );
}

/** Rows for what is inside a member: an object's members, an array's items, each alternative of a choice. */
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
  const [example] = (schema.examples as unknown[] | undefined) ?? [];
  const shown = example === undefined ? [] : [html` Example: <code>${JSON.stringify(example)}</code>.`];
  return [
    html`<code>${path}</code>${required ? '' : html` <small>optional</small>`}`,
    typeof schema.$ref === 'string'
      ? html`<a href="#${schemaAnchor(schema.$ref)}">${schema.$ref.split('/').at(-1)}</a>`
      : html`${schemaProse(schema)}`,
    [...spans(String(schema.description ?? '')), ...shown],
  ];
}

function typeProse(schema: JsonSchema): string {
  const items = schema.items as JsonSchema | undefined;
  if (items) return `array of ${typeof items.$ref === 'string' ? items.$ref.split('/').at(-1) : typeProse(items)}`;
  if (schema.oneOf || schema.anyOf) return 'one of several';
  if (Array.isArray(schema.type)) return schema.type.join(' or ');
  if (typeof schema.type === 'string') return schema.type;
  return schema.const === undefined ? 'any JSON' : '';
}
