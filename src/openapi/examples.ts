import { fieldType } from '../definition/field-types.js';
import { type Field, type Leaf, leaves, type Resource } from '../definition/resource.js';

type Example = Readonly<Record<string, unknown>>;

/**
 * Examples of a record, of the body of a POST and of the body of a PATCH, made of the fields' own examples, or of a value per
 * type. The PATCH changes the first field that has an example and clears the next field that can be null.
 */
export function examplesOf(resource: Resource): Record<`${'record' | 'create' | 'patch'}Example`, Example> {
  const all = leaves(resource);
  const writable = all.filter(({ field }) => field.write);
  const changed = writable.findIndex((leaf) => leaf.field.example !== undefined);
  const cleared = writable.slice(changed + 1).find(({ field }) => field.nullable);
  const patched = [...writable.slice(changed, changed + 1), ...(cleared ? [{ ...cleared, value: null }] : [])];
  return { recordExample: example(all), createExample: example(writable), patchExample: example(patched) };
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
