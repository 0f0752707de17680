import { splitPointer } from '../../base/members.js';
import { getPlace, type JsonShape, type Leaf } from '../../resource/definition/resource.js';

/** Finds forms that the definition does not show, such as texts beside objects. Members without a pointer are left out on purpose. */
export function listFormsLeftOut({ path, field }: Leaf, text: string | null | undefined): string[] {
  if (field.type !== 'json' || field.codec !== undefined || field.clean !== undefined || text == null) return [];
  const tokens = splitPointer(field.pointer ?? '');
  const value = tokens.reduce<unknown>((inner, name) => Object(inner)[name], JSON.parse(text));
  return [...new Set(listInShape(field, value, getPlace(path)))];
}

function listInShape({ type, items, fields, show = [] }: JsonShape, value: unknown, at: string): string[] {
  if (value === null || value === undefined) return [];
  if (items !== undefined)
    return Array.isArray(value)
      ? value.flatMap((item) => listInShape(items, item, `${at}/items`))
      : [leavesOut(value, at)];
  if (fields !== undefined) {
    if (typeof value !== 'object' || Array.isArray(value)) return [leavesOut(value, at)];
    const members = Object.entries(fields);
    return members.flatMap(([name, shape]) =>
      listInShape(shape, Object(value)[shape.column ?? name], `${at}/fields/${name}`),
    );
  }
  return type === 'json'
    ? listInFreeJson(show.map(splitPointer), value, '').map((form) => `${at} leaves out ${form}`)
    : [];
}

function listInFreeJson(shown: readonly string[][], value: unknown, at: string): string[] {
  if (value === null) return [];
  if (Array.isArray(value)) return value.flatMap((item) => listInFreeJson(shown, item, at));
  const form = at === '' ? nameForm(value) : `${nameForm(value)} at ${at}`;
  if (typeof value !== 'object') return shown.some((tokens) => tokens.length === 0) ? [] : [form];
  const members = Object.entries(value);
  if (shown.every((tokens) => tokens.length === 0)) return members.length === 0 ? [] : [form];
  return members.flatMap(([name, inner]) => {
    const below = shown.filter(([first]) => first === name).map(([, ...tokens]) => tokens);
    return below.length === 0 ? [] : listInFreeJson(below, inner, `${at}/${name}`);
  });
}

const forms: Readonly<Record<string, string>> = { string: 'texts', number: 'numbers', boolean: 'true and false' };
const nameForm = (value: unknown): string => (Array.isArray(value) ? 'lists' : (forms[typeof value] ?? 'objects'));
const leavesOut = (value: unknown, at: string): string => `${at} leaves out ${nameForm(value)}`;
