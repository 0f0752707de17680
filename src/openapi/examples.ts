import { type Field, type FieldType, type Leaf, leaves, type Resource } from '../definition/resource.js';

type Example = Readonly<Record<string, unknown>>;

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

/** An example of a record, made of the fields' own examples, or of a value per type for a field without an example. */
export function recordExample(resource: Resource): Example {
  return example(leaves(resource));
}

/** An example of the body of a POST. */
export function createExample(resource: Resource): Example {
  return example(leaves(resource).filter(({ field }) => field.write));
}

/** An example of the body of a PATCH: changes the first field that has an example, clears the next field that can be null. */
export function patchExample(resource: Resource): Example {
  const writable = leaves(resource).filter(({ field }) => field.write);
  const changed = writable.findIndex((leaf) => leaf.field.example !== undefined);
  const cleared = writable.find(({ field }, i) => i > changed && field.nullable);
  return example([...writable.slice(changed, changed + 1), ...(cleared ? [{ ...cleared, value: null }] : [])]);
}

/** A record of the leaves, groups included; each has its `value`, if given, or an example. */
function example(members: readonly (Leaf & { readonly value?: null })[]): Example {
  const record: Record<string, unknown> = {};
  for (const { path, field, value = exampleOf(field) } of members) {
    const [name, inner] = path as [string, string | undefined];
    record[name] = inner === undefined ? value : { ...(record[name] as Example), [inner]: value };
  }
  return record;
}

function exampleOf({ example, nullable, type }: Field): unknown {
  return example ?? (nullable && type === 'text' ? null : byType[type]);
}
