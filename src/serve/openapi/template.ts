import { projectText } from '../../base/paths.js';

/** Text of a file in config/openapi. */
export function readText(file: string): string {
  return projectText(`config/openapi/${file}`);
}

/** Value of a JSON file in config/openapi. */
export function readData(file: string): unknown {
  return JSON.parse(readText(file));
}

/** Values that `{{name}}` in a template stands for. */
export type Values = Readonly<Record<string, unknown>>;

/**
 * A copy of the template in which values replace `{{name}}` in keys and strings. A string that is nothing but `{{name}}`
 * becomes the value itself; an array in an array, and an object under the key "...", are spread. Left out: undefined
 * values, and objects whose `when` names a value that is false or undefined. Throws for a name without a value.
 */
export function fill(template: unknown, values: Values): unknown {
  if (typeof template === 'string') return fillText(template, values);
  if (Array.isArray(template)) return template.flatMap((item) => (item === null ? [null] : (fill(item, values) ?? [])));
  if (typeof template !== 'object' || template === null) return template;
  const { when, ...members } = template as Record<string, unknown>;
  if (typeof when === 'string' && !valueNamed(when, values)) return undefined;
  const filled = Object.entries(members).flatMap(([key, member]) =>
    key === '...' ? Object.entries(fill(member, values) as object) : [[fillText(key, values), fill(member, values)]],
  );
  return Object.fromEntries(filled.filter(([, member]) => member !== undefined));
}

function fillText(text: string, values: Values): unknown {
  const [, name] = /^\{\{([\w.]+)\}\}$/.exec(text) ?? [];
  if (name !== undefined) return valueNamed(name, values);
  return text.replace(/\{\{([\w.]+)\}\}/g, (_, each: string) => String(valueNamed(each, values)));
}

function valueNamed(name: string, values: Values): unknown {
  if (!Object.hasOwn(values, name)) throw new Error(`config/openapi names {{${name}}}, which has no value.`);
  return values[name];
}

/** Named lists of names; a list may name another list. */
export type Sets = Readonly<Record<string, readonly string[]>>;

/** The names, with each name of a set replaced by the names in it. */
export function expand(names: readonly string[], sets: Sets): string[] {
  return names.flatMap((name) => (sets[name] ? expand(sets[name], sets) : [name]));
}

/** The same members with mapped values. */
export function mapValues<T, U>(
  members: Readonly<Record<string, T>>,
  map: (value: T, name: string) => U,
): Record<string, U> {
  return Object.fromEntries(Object.entries(members).map(([name, value]) => [name, map(value, name)]));
}
