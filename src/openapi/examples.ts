import { fieldType } from '../definition/field-types.js';
import { type Field, type Leaf, leaves, type Resource } from '../definition/resource.js';

type Example = Readonly<Record<string, unknown>>;

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
  return example ?? (nullable && type === 'text' ? null : fieldType(type).example);
}
