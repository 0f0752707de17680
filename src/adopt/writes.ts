import { parameterNames } from '../definition/filter-kinds.js';
import { AdoptRefused, type Column } from './catalog.js';
import { alias, isInteger } from './columns.js';
import { type Fields, referredTo } from './fields.js';
import { logWrite } from './log-write.js';
import { isNamed, snakeCase } from './names.js';
import type { FieldJson } from './sealed-fields.js';
import type { Subject, Survey } from './survey.js';

/** How a resource is written: parts of its definition, and columns for the grants. */
export interface WriteDraft {
  readonly fields: Fields['fields'];
  readonly write: Readonly<Record<string, unknown>>;
  readonly version: string;
  /** A column of the view that holds the version where the table has none. */
  readonly versionColumn?: { readonly name: string; readonly select: string };
  /** Columns of the table by their names in the view. */
  readonly inserts: ReadonlyMap<string, Column>;
  readonly updates: ReadonlyMap<string, Column>;
  /** Views of the resources that it refers to. */
  readonly references: readonly Subject[];
  readonly open: readonly string[];
}

const charactersMax = 10_000;
const integerBounds: Readonly<Record<string, number>> = { smallint: 2 ** 15, integer: 2 ** 31, bigint: 2 ** 53 };

/** Drafts the writes of a resource. Throws AdoptRefused when nothing can give a new row its id. */
export function writeDraft(subject: Subject, survey: Survey, drafted: Fields, entity: string | undefined): WriteDraft {
  const { table, id, tenant } = subject;
  if (!id.made && id.type !== 'uuid')
    throw new AdoptRefused(
      `${table.quoted} cannot be written: its id of type ${id.type} has no default; give it one, or leave the table out of --write.`,
    );
  const moved = movedColumns(subject, drafted);
  const log = logWrite(survey);
  const logged = log.audit && entity !== undefined;
  const writable = new Map<string, Column>();
  const references: Subject[] = [];
  const fields: Record<string, FieldJson> = {};
  for (const [member, field] of Object.entries(drafted.fields)) {
    const name = String(field.column);
    const column = drafted.columns.get(name);
    const target = column && referredTo(subject, survey, column.of);
    const rule = column && writeRule(column.of, field, target);
    const isTaken = parameterNames.some((reserved) => reserved.test(member));
    const isOwn = isTaken || column?.of === id || Object.hasOwn(moved.onChange, name) || isBookkeeping(name);
    if (column === undefined || rule === undefined || isOwn || column.select !== `${alias}.${column.of.quoted}`) {
      fields[member] = field;
      continue;
    }
    const auditName = logged && column.of.name !== name ? { auditName: column.of.name } : {};
    fields[member] = { ...field, write: { ...rule, ...auditName } };
    writable.set(name, column.of);
    if (target) references.push(target);
  }
  if (writable.size === 0) throw new AdoptRefused(`${table.quoted} cannot be written: no column of it can be.`);
  const given = [...writable.values(), id, tenant];
  const missing = table.columns.filter((column) => column.notNull && !column.made && !given.includes(column));
  const makesIds = !id.made;
  return {
    fields,
    write: {
      view: '',
      ids: makesIds ? 'gateway' : 'database',
      ...(Object.keys(moved.onChange).length > 0 && { onChange: moved.onChange }),
      audit: logged ? log.audit : false,
    },
    version: moved.version,
    ...(moved.versionColumn && { versionColumn: moved.versionColumn }),
    inserts: new Map([['workspace_id', tenant], ...(makesIds ? ([['id', id]] as const) : []), ...writable]),
    updates: new Map([
      ...writable,
      ...Object.keys(moved.onChange).map((name) => [name, drafted.columns.get(name)?.of as Column] as const),
    ]),
    references,
    open: [
      `clients may write ${[...writable.keys()].join(', ')}: where they must not, remove "write" there and the column from the grants.`,
      ...(missing.length > 0
        ? [
            `a new row needs ${missing.map(({ name }) => name).join(', ')}, which no client gives: add a default, or a field.`,
          ]
        : []),
      ...(logged ? [] : ['writes are not in an audit log of the app, unless a trigger of the app logs them.']),
    ],
  };
}

/** Times and versions that the app keeps itself. */
function isBookkeeping(name: string): boolean {
  return isNamed('created', name) || isNamed('updated', name) || isNamed('version', name);
}

/** The rule of a field that clients can write; undefined for others. */
function writeRule(column: Column, field: FieldJson, target: Subject | undefined): FieldJson | undefined {
  if (column.notNull && column.made) return undefined; // a POST that leaves it out would write NULL
  const required = column.notNull ? { required: true } : {};
  if (target !== undefined) return { ...required, references: `gateway.${snakeCase(target.table.name)}` };
  if (field.codec !== undefined || field.pointer !== undefined) return undefined;
  if (field.type === 'text') {
    const lengths = { ...(column.notNull && { minLength: 1 }), maxLength: column.length ?? charactersMax };
    return { ...required, schema: lengths };
  }
  if (field.type === 'integer' && isInteger(column)) {
    const bound = integerBounds[column.type] as number;
    return { ...required, schema: { minimum: -bound + (bound === 2 ** 53 ? 1 : 0), maximum: bound - 1 } };
  }
  return ['enum', 'date', 'boolean'].includes(String(field.type)) ? required : undefined;
}

/** The version, and the columns that no trigger of the app moves. Without a version column it is xmin, which each update moves. */
function movedColumns(
  { table }: Subject,
  { columns }: Fields,
): Pick<WriteDraft, 'version' | 'versionColumn'> & { onChange: Record<string, 'increment' | 'now'> } {
  const isMoved = (name: string): boolean =>
    new RegExp(`\\bnew\\."?${name.toLowerCase()}\\b`).test(table.updateTriggers);
  const plain = [...columns].filter(([, { select, of }]) => select === `${alias}.${of.quoted}` && of.notNull);
  const version = plain.find(([, { of }]) => isNamed('version', of.name) && isInteger(of));
  const updated = plain.find(([, { of }]) => isNamed('updated', of.name) && of.type === 'timestamp with time zone');
  const onChange = {
    ...(version && !isMoved(version[1].of.name) && { [version[0]]: 'increment' as const }),
    ...(updated && !isMoved(updated[1].of.name) && { [updated[0]]: 'now' as const }),
  };
  if (version) return { version: version[0], onChange };
  const versionColumn = { name: 'row_version', select: `${alias}.xmin::text::bigint` };
  return { version: 'row_version', versionColumn, onChange };
}
