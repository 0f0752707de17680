import { camelCase, singular, snakeCase } from './names.js';
import type { Subject, Survey } from './survey.js';

/** Names that the gateway uses itself: views and tables of its schema, the files of `adopt` beside those of views, paths, schemas of OpenAPI. */
const taken = {
  view: /^(tokens|token_uses|api_tokens|idempotency|migrations|migrations_lock|applied_files|workspaces|token_owners|key_ids|row_security|logboeken_write)$/,
  name: /^(sync|self|openapi|v1)$/,
  record: /^(problem|pagination)$/,
  recordEnd: /(Page|Create|Patch|Written)$/,
};

/** Names of a resource. */
export interface Names {
  readonly view: string;
  readonly name: string;
  readonly record: string;
}

/** Names of the view, of the resource and of one record; a number tells tables apart whose names are the same in this form. */
export function namesOf(subject: Subject, { subjects }: Survey): Names {
  const own = namesFrom(subject.table.name);
  const earlier = subjects.slice(0, subjects.indexOf(subject)).map(({ table }) => namesFrom(table.name));
  const numbered = (key: keyof Names, mark: string): string => {
    const twins = earlier.filter((each) => each[key] === own[key]).length;
    return twins === 0 ? own[key] : `${own[key].slice(0, key === 'view' ? 47 : 36)}${mark}${twins + 1}`;
  };
  return { view: numbered('view', '_'), name: numbered('name', '-'), record: numbered('record', '') };
}

/** The names without a number. */
export function namesFrom(table: string): Names {
  const view = snakeCase(table);
  const name = view.replaceAll('_', '-').slice(0, 36).replace(/-+$/, '');
  const record = camelCase(singular(view)).slice(0, 30);
  return {
    view: taken.view.test(view) ? `app_${view}` : view,
    name: taken.name.test(name) ? `app-${name}` : name,
    record: taken.record.test(record) ? `app${record}` : record.replace(taken.recordEnd, '$&Record'),
  };
}
