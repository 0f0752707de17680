import { projectText } from '../../base/paths.js';

export function readText(file: string): string {
  return projectText(`config/openapi/${file}`);
}

export function readData(file: string): unknown {
  return JSON.parse(readText(file));
}

export type Values = Readonly<Record<string, unknown>>;

/** `{{name}}` alone becomes the value itself; "..." and nested arrays are spread; `when` false leaves out. */
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

export type Sets = Readonly<Record<string, readonly string[]>>;

export function expand(names: readonly string[], sets: Sets): string[] {
  return names.flatMap((name) => (sets[name] ? expand(sets[name], sets) : [name]));
}

export function mapValues<T, U>(
  members: Readonly<Record<string, T>>,
  map: (value: T, name: string) => U,
): Record<string, U> {
  return Object.fromEntries(Object.entries(members).map(([name, value]) => [name, map(value, name)]));
}
