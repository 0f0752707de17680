import { type Leaf, type Part, placeOf } from '../../resource/definition/resource.js';
import { pointerTokens } from '../../resource/projection/shown-members.js';

/**
 * Finds values of a form that the definition does not show, such as texts beside objects. Members that no pointer names are left out on
 * purpose.
 */
export function formsLeftOut({ path, field }: Leaf, text: string | null | undefined): string[] {
  if (field.type !== 'json' || field.codec !== undefined || field.clean !== undefined || text == null) return [];
  const tokens = pointerTokens(field.pointer ?? '');
  const value = tokens.reduce<unknown>((inner, name) => Object(inner)[name], JSON.parse(text));
  return [...new Set(inPart(field, value, placeOf(path)))];
}

function inPart({ type, items, fields, show = [] }: Part, value: unknown, at: string): string[] {
  if (value === null || value === undefined) return [];
  if (items !== undefined)
    return Array.isArray(value) ? value.flatMap((item) => inPart(items, item, `${at}/items`)) : [leavesOut(value, at)];
  if (fields !== undefined) {
    if (typeof value !== 'object' || Array.isArray(value)) return [leavesOut(value, at)];
    const members = Object.entries(fields);
    return members.flatMap(([name, part]) => inPart(part, Object(value)[part.column ?? name], `${at}/fields/${name}`));
  }
  return type === 'json'
    ? inFreeJson(show.map(pointerTokens), value, '').map((form) => `${at} leaves out ${form}`)
    : [];
}

function inFreeJson(shown: readonly string[][], value: unknown, at: string): string[] {
  if (value === null) return [];
  if (Array.isArray(value)) return value.flatMap((item) => inFreeJson(shown, item, at));
  const form = at === '' ? formOf(value) : `${formOf(value)} at ${at}`;
  if (typeof value !== 'object') return shown.some((tokens) => tokens.length === 0) ? [] : [form];
  const members = Object.entries(value);
  if (shown.every((tokens) => tokens.length === 0)) return members.length === 0 ? [] : [form];
  return members.flatMap(([name, inner]) => {
    const below = shown.filter(([first]) => first === name).map(([, ...tokens]) => tokens);
    return below.length === 0 ? [] : inFreeJson(below, inner, `${at}/${name}`);
  });
}

const forms: Readonly<Record<string, string>> = { string: 'texts', number: 'numbers', boolean: 'true and false' };
const formOf = (value: unknown): string => (Array.isArray(value) ? 'lists' : (forms[typeof value] ?? 'objects'));
const leavesOut = (value: unknown, at: string): string => `${at} leaves out ${formOf(value)}`;
