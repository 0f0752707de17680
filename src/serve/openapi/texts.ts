import { readProject } from '../../base/paths.js';

export type TemplateValues = Readonly<Record<string, unknown>>;

/** Replaces names such as {{name}} by their values. */
export function fill(text: string, values: TemplateValues): string {
  return text.replace(/\{\{(\w+)\}\}/g, (_, name: string) => String(findValue(name, values)));
}

export function fillFile(file: string, values: TemplateValues): string {
  return fill(readProject(`config/openapi/${file}`), values);
}

/** Replaces a text that is "{{name}}" alone by the value itself. */
export function readData(file: string, values: TemplateValues): unknown {
  return JSON.parse(readProject(`config/openapi/${file}`), (_, value) => {
    if (typeof value !== 'string') return value;
    const [, name] = /^\{\{(\w+)\}\}$/.exec(value) ?? [];
    return name === undefined ? fill(value, values) : findValue(name, values);
  });
}

function findValue(name: string, values: TemplateValues): unknown {
  if (!Object.hasOwn(values, name)) throw new Error(`A text names {{${name}}}, which has no value.`);
  return values[name];
}

export function mapValues<T, U>(
  members: Readonly<Record<string, T>>,
  map: (value: T, name: string) => U,
): Record<string, U> {
  return Object.fromEntries(Object.entries(members).map(([name, value]) => [name, map(value, name)]));
}
