import { parameterNames } from '../../resource/definition/filter-kinds.js';
import { type Fields, referenceOf, type ViewColumn } from './fields.js';
import { isPlain, type Key, plainKey, proposedIndex, usableIndexes } from './indexes.js';
import { isNamed } from './names.js';
import type { Column, Subject, Survey } from './schema.js';
import type { SqlFile } from './sql.js';

const filtersMax = 16;
const since =
  'Only records that changed at this moment or later: a date-time with its offset, or a date, which is the start of that day.';

/** Order and filters of the list, with proposals for all that no index covers. */
export function listOf(view: string, name: string, subject: Subject, survey: Survey, { columns }: Fields) {
  const { table, id, steps } = subject;
  // Stored values of encoded columns cannot be compared, and no index can have a virtual column.
  const sortable = columns.filter(({ field, of }) => field.codec === undefined && !of.isVirtual);
  const order = orderOf(subject, sortable);
  const [first] = order as [ViewColumn, ...ViewColumn[]];
  const updated = sortable.find(({ of, field }) => isNamed('updated', of.name) && field.type === 'timestamp');
  const wanted: [name: string, column: ViewColumn, kind: string, text: string][] = [];
  for (const column of sortable)
    if (isPlain(column) && isSearched(column, subject, survey))
      wanted.push([column.member, column, 'equals', `Only records with this ${column.member}.`]);
  if (first.of !== id)
    wanted.push(['from', first, 'from', 'First day, inclusive.'], ['to', first, 'to', 'Last day, inclusive.']);
  if (updated) wanted.push(['updatedSince', updated, 'since', since]);
  const filters = wanted
    .filter(([each]) => !parameterNames.some((reserved) => reserved.test(each)))
    .slice(0, filtersMax);
  const searched = filters.flatMap(([, column, kind]) =>
    kind === 'equals' && column.of !== leadOf(subject) ? [column] : [],
  );
  const lead = plainKey(leadOf(subject));
  // A reference of a table without the workspace finds few rows, so that no other column has to lead the index.
  const isNarrow = ({ of }: ViewColumn): boolean => steps.length > 0 && referenceOf(subject, survey, of) !== undefined;
  const proposal = (suffix: string, purpose: string, keys: readonly Key[], fixed: number): SqlFile[] =>
    proposedIndex(table, `${view}_${suffix}`, `For GET /${name}: ${purpose}`, keys, fixed);
  return {
    order,
    filters: Object.fromEntries(
      filters.map(([each, column, kind, description]) => [each, { column: column.name, kind, description }]),
    ),
    files: [
      ...proposal('list', 'the order of the list', [lead, ...order], 1),
      ...searched.flatMap((column) => {
        const fixed = [...(isNarrow(column) ? [] : [lead]), column];
        return proposal(column.name, `${column.member}=…`, [...fixed, ...order], fixed.length);
      }),
      ...(updated ? proposal('changed', 'updatedSince=…', [lead, ...order, updated], 1) : []),
    ],
  };
}

/** References, states, and the words of an audit log. */
function isSearched({ of, field }: ViewColumn, subject: Subject, survey: Survey): boolean {
  const { log, id } = subject;
  if (of === id) return false;
  if (of === log?.entity || of === log?.entityId || of === log?.action) return true;
  const isState = isNamed('status', of.name) && ['text', 'enum'].includes(String(field.type));
  return isState || referenceOf(subject, survey, of) !== undefined;
}

/** By an index that is there: the workspace, times or dates, the id. Else by the time of creation, else by the id. */
function orderOf(subject: Subject, columns: readonly ViewColumn[]): ViewColumn[] {
  const { table, id } = subject;
  const own = columns.filter(({ of }) => of === id);
  // A row that moves in the list while a client walks through it is missed or comes twice.
  const times = columns.filter(
    ({ of, field }) => of.notNull && ['timestamp', 'date'].includes(String(field.type)) && !isNamed('updated', of.name),
  );
  const indexed = usableIndexes(table, true)
    .filter(({ columns: [first, ...rest], descending }) => {
      const directions = new Set(descending.slice(1));
      return rest.length > 1 && first === leadOf(subject).name && rest.at(-1) === id.name && directions.size === 1;
    })
    .map((index) => index.columns.slice(1, -1).map((name) => times.find(({ of }) => of.name === name)))
    .filter((found): found is ViewColumn[] => !found.includes(undefined))
    .sort((a, b) => a.length - b.length);
  const created = times.find(({ of }) => isNamed('created', of.name));
  return [...(indexed[0] ?? (created ? [created] : [])), ...own];
}

/** The column that leads the indexes of the table: the workspace, or the reference that leads to it. */
export function leadOf({ tenant, steps }: Subject): Column {
  return steps[0]?.from ?? tenant;
}
