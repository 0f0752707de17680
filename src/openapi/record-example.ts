import type { Field, FieldType, Resource } from '../definition/resource.js';

type Example = Readonly<Record<string, unknown>>;

/** A record as documentation shows it, made of the fields' own examples and of one value per type where there is none. */
export function exampleRecord(resource: Resource): Example {
  return build(resource, () => true);
}

/** A body of POST as documentation shows it. */
export function exampleBody(resource: Resource): Example {
  return build(resource, (field) => field.write !== undefined);
}

const byType: Readonly<Record<FieldType, unknown>> = {
  uuid: '5f0d7c1e-8a43-4c52-9b1d-3f6e2a9c7d10',
  bigint: '1042',
  text: '5f0d7c1e-8a43-4c52-9b1d-3f6e2a9c7d10',
  integer: 3,
  number: 2.5,
  boolean: true,
  date: '2026-03-14',
  timestamp: '2026-03-14T09:26:53.589Z',
  json: [],
};

function build(resource: Resource, keep: (field: Field) => boolean): Example {
  const pick = (fields: Readonly<Record<string, Field>>): Example =>
    Object.fromEntries(Object.entries(fields).flatMap(([name, field]) => (keep(field) ? [[name, value(field)]] : [])));
  return Object.fromEntries(
    Object.entries(resource.fields).flatMap(([name, member]) => {
      if (!('group' in member)) return keep(member) ? [[name, value(member)]] : [];
      const inner = pick(member.group);
      return Object.keys(inner).length > 0 ? [[name, inner]] : [];
    }),
  );
}

function value(field: Field): unknown {
  if (field.example !== undefined) return field.example;
  return field.nullable && field.type === 'text' ? null : byType[field.type];
}
