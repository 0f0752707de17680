import { toSnakeCase } from '../../base/words.js';
import type { Subject } from './schema.js';

/** Turns "created_at" into "createdAt". */
export function toCamelCase(name: string): string {
  return toSnakeCase(name).replace(/_+([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

/** Adds a number if the name is taken, and cuts the name before it, so that PostgreSQL, which has a limit, cuts neither. */
export function chooseUntaken(name: string, taken: Set<string>, separator = '_', lettersMax = 50): string {
  let free = name;
  for (let n = 2; taken.has(free); n++) free = `${name.slice(0, lettersMax)}${separator}${n}`;
  taken.add(free);
  return free;
}

/** English and Dutch endings are tried in this order. */
const plurals: readonly (readonly [RegExp, string])[] = [
  [/((install|organis|loc|administr|rel|relat|not)at?ie)s$/, '$1'],
  [/ies$/, 'y'],
  [/(ss|x|ch|sh)es$/, '$1'],
  [/([^aeious])s$/, '$1'],
  [/([eao])s$/, '$1'],
  [/([b-df-hj-np-tv-z])\1?en$/, '$1'],
];

/** Turns "work_orders" into "work_order", and "klanten" into "klant"; a name that is no plural stays. */
export function toSingular(name: string): string {
  const [plural, end] = plurals.find(([ending]) => ending.test(name)) ?? [/$/, ''];
  return name.replace(plural, end);
}

/** The gateway itself uses these names: of views and tables, of files of `adopt`, of paths, and of schemas of OpenAPI. */
const reservedNames = {
  view: /^(tokens|token_uses|api_tokens|idempotency|reads|copies|applied_files|workspaces|token_owners|key_ids|logboeken_write|wall_keys|verified_workspace|migration_lock|undo)$/,
  name: /^(sync|self|openapi|v1|token)$/,
  record: /^(problem|pagination)$/,
  recordEnd: /(Page|Create|Patch|Written)$/,
};

export type ApiNames = ReturnType<typeof makeNamesFrom>;

/** A number distinguishes tables with the same names. */
export function getNames(
  { table }: Pick<Subject, 'table'>,
  { subjects }: { readonly subjects: readonly Pick<Subject, 'table'>[] },
): ApiNames {
  const at = subjects.findIndex((each) => each.table === table);
  const all = [...subjects.slice(0, at < 0 ? undefined : at), { table }].map(({ table }) => makeNamesFrom(table.name));
  const number = (key: keyof ApiNames, separator: string, lettersMax: number): string => {
    const takenNames = new Set<string>();
    return all.map((names) => chooseUntaken(names[key], takenNames, separator, lettersMax)).at(-1) as string;
  };
  return { view: number('view', '_', 47), name: number('name', '-', 36), record: number('record', '', 36) };
}

function makeNamesFrom(table: string) {
  const view = toSnakeCase(table);
  const name = view.replaceAll('_', '-').slice(0, 36).replace(/-+$/, '');
  const record = toCamelCase(toSingular(view)).slice(0, 30);
  return {
    view: reservedNames.view.test(view) ? `app_${view}` : view,
    name: reservedNames.name.test(name) ? `app-${name}` : name,
    record: reservedNames.record.test(record) ? `app${record}` : record.replace(reservedNames.recordEnd, '$&Record'),
  };
}

export function listItems(items: readonly string[], itemsMax = 20, separator = ', '): string {
  if (items.length <= itemsMax) return items.join(separator);
  return `${items.slice(0, itemsMax).join(separator)} and ${items.length - itemsMax} more`;
}
