import { isNamed } from '../../../base/words.js';
import { isParameter } from '../../../resource/definition/filter-kinds.js';
import { type IndexKey, isPlain, makePlainKey } from '../columns/types.js';
import type { ApiNames } from '../names.js';
import { type Column, type Index, provesAll, type Subject, type Survey } from '../schema.js';
import type { DraftFile } from '../sql.js';
import { type FieldJson, type Fields, findReferenceOf, type ViewColumn } from './fields.js';
import { type IndexKeys, listUsableIndexes, proposeIndex } from './index-drafts.js';

const filtersMax = 16; // resource.schema.json allows no more
const lookUpsMax = 2; // each look-up may need an index of its own
const sinceDescription =
  'Only records that changed at this moment or later: a date-time with its offset, or a date, which is the start of that day.';

interface FilterDraft {
  readonly name: string;
  readonly column: ViewColumn;
  readonly json: FieldJson;
  readonly files: readonly DraftFile[];
  /** Such a filter is worth an index in every draft. */
  readonly isUsual?: boolean;
}

export function planListDraft({ view, name }: ApiNames, subject: Subject, survey: Survey, { columns }: Fields) {
  const { table } = subject;
  // Encoded values cannot be compared, and no index can have a virtual column.
  const sortable = columns.filter(({ field, of }) => field.codec === undefined && !of.isVirtual);
  const order = chooseOrder(subject, sortable);
  const lead = makePlainKey(getLead(subject));
  // If each row has a reference of its own to the record with the workspace, the index of that reference finds the row.
  const isAlone =
    subject.steps.length > 0 &&
    table.indexes.some((index) => provesAll(index) && index.columns.join() === lead.of.name);
  const propose: ListPlan['propose'] = (suffix, purpose, keys) =>
    isAlone ? [] : proposeIndex(table, `${view}_${suffix}`, `For GET /${name}: ${purpose}.`, keys);
  const plan = { subject, survey, columns: sortable, order, lead, propose };
  const allFilters = [...planSearches(plan), ...planPeriods(plan)].filter((filter) => !isParameter(filter.name, true));
  const isDrafted = ({ files, isUsual }: FilterDraft): boolean => survey.allFilters || isUsual || files.length === 0;
  const filters = allFilters.filter(isDrafted).slice(0, filtersMax);
  return {
    order,
    filters: Object.fromEntries(filters.map(({ name, json }) => [name, json])),
    unindexed: allFilters.filter((filter) => !isDrafted(filter)).map((filter) => filter.name),
    files: [
      ...propose('list', 'the order of the list', { fixed: [lead], ordered: order }),
      ...new Map(filters.flatMap(({ files }) => files).map((file) => [file.path, file])).values(),
    ],
  };
}

interface ListPlan {
  readonly subject: Subject;
  readonly survey: Survey;
  readonly columns: readonly ViewColumn[];
  readonly order: readonly ViewColumn[];
  /** An index of a list begins with it: the workspace, or the reference that leads to it. */
  readonly lead: IndexKey;
  readonly propose: (suffix: string, purpose: string, keys: IndexKeys) => DraftFile[];
}

/** Offers filters of unique columns, references, states, and the words of an audit log. */
function planSearches({ subject, survey, columns, order, lead, propose }: ListPlan): FilterDraft[] {
  const lookUps = columns.filter((column) => isLookUp(column, subject)).slice(0, lookUpsMax);
  return columns
    .filter((column) => isPlain(column) && (lookUps.includes(column) || isSearched(column, subject, survey)))
    .map((column) => {
      const { member, of, name, field } = column;
      const isUnique = lookUps.includes(column);
      // A reference of a table without the workspace finds few rows, so no other column has to lead the index.
      const isNarrow = subject.steps.length > 0 && findReferenceOf(subject, survey, of) !== undefined;
      const json = {
        column: name,
        kind: 'equals',
        ...(isUnique && { nearlyUnique: true }),
        description: `Only ${isUnique ? 'the record' : 'records'} with this ${member}.`,
      };
      const isServed = of === lead.of || field.type === 'enum'; // no index serves labels behind the wall
      const fixed = isNarrow ? [column] : [lead, column];
      const files = isServed ? [] : propose(name, `${member}=…`, { fixed, ordered: order });
      return { name: member, column, json, files, isUsual: isUnique };
    });
}

/** Offers ranges of the business date, or the first column of the order, and of the last change. */
function planPeriods({ subject, columns, order, lead, propose }: ListPlan): FilterDraft[] {
  const offer = (name: 'from' | 'to' | 'updatedSince', column: ViewColumn, description: string): FilterDraft => {
    const isSince = name === 'updatedSince';
    const [suffix, purpose] = isSince ? ['changed', 'updatedSince=…'] : [column.name, 'from=… and to=…'];
    const keys = { fixed: [lead], ordered: [...order, column] };
    const files = order[0] === column ? [] : propose(suffix, purpose, keys);
    const json = { column: column.name, kind: isSince ? 'since' : name, description };
    return { name, column, json, files, isUsual: !isSince };
  };
  const [first] = order as [ViewColumn, ...ViewColumn[]];
  const times = columns.filter(({ field }) => isTimeField(field));
  const business = times.find(({ of }) => isNamed('business', of.name));
  const day = business ?? (first.of === subject.id ? undefined : first);
  const updated = times.find(({ of, field }) => isNamed('updated', of.name) && field.type === 'timestamp');
  return [
    ...(day ? [offer('from', day, `First day of ${day.member}, inclusive.`)] : []),
    ...(day ? [offer('to', day, `Last day of ${day.member}, inclusive.`)] : []),
    ...(updated ? [offer('updatedSince', updated, sinceDescription)] : []),
  ];
}

/** Clients look a record up by a column that is unique, alone or within the workspace. */
function isLookUp({ of, field }: ViewColumn, { table, id, tenant, log }: Subject): boolean {
  const isSame = (name: string | null): boolean => name === of.name || name === tenant.name;
  const isKey = (index: Index): boolean =>
    provesAll(index) && index.columns.includes(of.name) && index.columns.every(isSame);
  const isFit = ['uuid', 'bigint', 'text', 'integer'].includes(String(field.type)) && of !== id && of !== tenant;
  return log === undefined && isFit && !of.refers && table.indexes.some(isKey);
}

function isSearched({ of, field }: ViewColumn, subject: Subject, survey: Survey): boolean {
  const { log, id } = subject;
  if (of === id) return false;
  if (of === log?.entity || of === log?.entityId || of === log?.action) return true;
  const isState = isNamed('status', of.name) && ['text', 'enum'].includes(String(field.type));
  return isState || findReferenceOf(subject, survey, of) !== undefined;
}

/**
 * Prefers the times and the id of an index of the table; then the time of creation, or the business date, and the id; then the id alone.
 */
function chooseOrder(subject: Subject, columns: readonly ViewColumn[]): ViewColumn[] {
  const { table, id } = subject;
  const idColumns = columns.filter(({ of }) => of === id);
  // A row whose time changes moves in the list: a client that walks through it would miss the row, or see it twice.
  const times = columns.filter(({ of, field }) => of.notNull && isTimeField(field) && !isNamed('updated', of.name));
  const indexed = listUsableIndexes(table, true)
    .filter(({ columns: [first, ...rest], descending }) => {
      const directions = new Set(descending.slice(1));
      return rest.length > 1 && first === getLead(subject).name && rest.at(-1) === id.name && directions.size === 1;
    })
    .map((index) => index.columns.slice(1, -1).map((name) => times.find(({ of }) => of.name === name)))
    .filter((found): found is ViewColumn[] => !found.includes(undefined))
    .sort((a, b) => a.length - b.length);
  const findTime = (purpose: 'created' | 'business', among: readonly ViewColumn[]): ViewColumn | undefined =>
    among.find(({ of, field }) => isNamed(purpose, of.name) && isTimeField(field));
  const first = findTime('created', times) ?? findTime('business', times) ?? addNulls(findTime('created', columns));
  return [...(indexed[0] ?? (first ? [first] : [])), ...idColumns];
}

const isTimeField = ({ type }: FieldJson): boolean => ['timestamp', 'date'].includes(String(type));

/** The view shows -infinity for NULL, which an order cannot have; clients see null for both. */
function addNulls(column: ViewColumn | undefined): ViewColumn | undefined {
  if (column === undefined) return undefined;
  const field = { ...column.field, nullable: undefined };
  return { ...column, field, select: `coalesce(${column.select}, '-infinity')` };
}

/** The indexes of a list begin with the column of the workspace, or with the reference that leads to it. */
export function getLead({ tenant, steps }: Subject): Column {
  return steps[0]?.from ?? tenant;
}
