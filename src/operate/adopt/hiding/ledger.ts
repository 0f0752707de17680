import type pg from 'pg';
import { toPointer } from '../../../base/members.js';
import { parseJson } from '../columns/sampled-values.js';
import { showId } from '../columns/types.js';
import { getNames } from '../names.js';
import type { Cause, Emptied, Hiding, JudgedView, Ledger, Point, Subject } from '../schema.js';
import { askOnce, sumRows } from '../schema.js';
import { alias, drawSample, joinFrom, joinWorkspace, sampledRowsMax } from '../sql.js';
import { listViewConditions } from './above.js';

// How many rows of a table a view shows, and why it does not show the others: counted in the tables of the app. Example: of 100 lines, 3
// have deleted_at, and 10 a deleted order, one of these both. Then 88 are shown, 3 are hidden by deleted_at and 9 by the record in orders:
// a row counts once, by the first condition that it does not meet.

/** Counts the rows that the draft would show, or with `view` the rows that this view shows today. */
export async function countLedger(
  client: pg.Client,
  subject: Subject,
  subjects: readonly Subject[],
  view?: JudgedView,
): Promise<Ledger> {
  const { table, shown } = subject;
  const causes = [...listCauses(subject), ...(view?.taken ?? [])];
  const ofDraft = shown.open.filter(({ by }) => !view?.open.some((each) => each.by === by));
  const opens = [...ofDraft, ...(view?.open ?? [])];
  const text = readTablesInstead(composeLedgerQuery(subject, causes, opens, view), subjects);
  const { rows: groups } = await client.query<RowGroup>(text);
  const otherwise = `another condition of the view${view?.policies ? `, or a policy (${view.policies})` : ''}`;
  const causeOf = ({ cause }: RowGroup): string[] => (causes[cause] ? [causes[cause].by] : []);
  const isSeen = (group: RowGroup): boolean => group.isShown ?? causeOf(group).length === 0;
  const [seen, unseen] = [groups.filter(isSeen), groups.filter((group) => !isSeen(group))];
  return {
    table: table.quoted,
    rows: sumRows(groups),
    ...(table.rows > sampledRowsMax && { sampledOf: Math.round(table.rows) }),
    ...(table.policies.length > 0 && { policies: table.policies.map(({ name }) => name) }),
    shown: sumRows(seen),
    hidden: tallyCauses(unseen, (group) => causeOf(group)[0] ?? otherwise),
    shownAlthough: tallyCauses(seen, (group) => causeOf(group)),
    open: tallyCauses(seen, (group) => group.open.map((i) => (opens[i] as Hiding).by)),
    emptied: [],
  };
}

/** Groups the rows by the first cause that hides them, by whether the view shows them, and by the open questions about them. */
function composeLedgerQuery(
  { table, id, shown }: Subject,
  causes: readonly Hiding[],
  opens: readonly Hiding[],
  view: JudgedView | undefined,
): string {
  const sampledRows = `(select * from ${drawSample(table)})`;
  // A row that has no way to a workspace is counted, too.
  const rows = joinFrom(sampledRows, shown.way, alias, () => true);
  const isShown = view
    ? `exists (select from ${view.name} v where v.id = ${view.id} and v.workspace_id is not null)`
    : 'null::boolean';
  const open = opens.map(({ unless }, i) => `case when (${unless}) is not true then ${i} end`).join(', ');
  const cause = causes.map(({ unless }, i) => `when (${unless}) is not true then ${i}`).join(' ');
  return `select cause, "isShown", open, count(*)::int as rows, (array_agg(id order by id))[1:3] as ids
    from (
      select ${showId(id).select}::text as id, ${isShown} as "isShown",
        array_remove(array[${open}]::int[], null) as open,
        case ${cause} else ${causes.length} end as cause
      ${rows}) r
    group by 1, 2, 3 order by 1`;
}

interface RowGroup extends Pick<Cause, 'rows' | 'ids'> {
  readonly cause: number;
  readonly isShown: boolean | null;
  readonly open: readonly number[];
}

function tallyCauses(groups: readonly RowGroup[], causesOf: (group: RowGroup) => string | readonly string[]): Cause[] {
  const causes = new Map<string, Cause>();
  for (const group of groups)
    for (const by of [causesOf(group)].flat()) {
      const { rows, ids } = causes.get(by) ?? { rows: 0, ids: [] };
      causes.set(by, { by, rows: rows + group.rows, ids: [...ids, ...group.ids].slice(0, 3) });
    }
  return [...causes.values()];
}

/** Lists the conditions of a shown row in the order in which they are asked. */
function listCauses({ tenant, steps, shown }: Subject): Hiding[] {
  const [step, ...further] = steps;
  const above = shown.above.map(({ by, unless }) => ({ by: `the record in ${by}`, unless }));
  if (step === undefined)
    return [{ by: `no ${tenant.name}`, unless: `t.${tenant.quoted} is not null` }, ...shown.own, ...above];
  const way = { steps: further, tenant };
  const from = `${joinFrom(step.table.quoted, way, 'b')} where b.${step.to.quoted} = t.${step.from.quoted} limit 1`;
  const leadsNowhere = `${step.from.name} leads to no row of ${step.table.quoted}`;
  const belongsNowhere = `no ${tenant.name} in ${(steps.at(-1) ?? step).table.quoted}`;
  return [
    { by: leadsNowhere, unless: `exists (select\n${from})` },
    { by: belongsNowhere, unless: `(select ${joinWorkspace(way, 'b')}\n${from}) is not null` },
    ...shown.own,
    ...above,
  ];
}

/** Matches quoted names and texts, in which nothing is replaced, and the views of a draft. */
const viewNames = /"(?:[^"]|"")*"|'(?:[^']|'')*'|\brecords\.(\w+)/g;

/** Composes the views that a draft reads, directly or through others, as the draft makes them, because they need not exist yet. */
function listViewsBelow(sql: string, subjects: readonly Subject[]): string[] {
  const names = new Set([...sql.matchAll(viewNames)].flatMap(([, name]) => name ?? []));
  return [...names].flatMap((name) => {
    const { table, id, shown } = subjects.find((each) => getNames(each, { subjects }).view === name) as Subject;
    const where = listViewConditions(shown).join(' and ') || 'true';
    const body = `select ${joinWorkspace(shown.way)} as workspace_id, ${showId(id).select} as id\n${joinFrom(table.quoted, shown.way)} where ${where}`;
    return [...listViewsBelow(body, subjects), `"${name}" as not materialized (${body})`];
  });
}

/** Puts the views before the statement as subqueries, so that it reads the tables of the app alone. */
function readTablesInstead(sql: string, subjects: readonly Subject[]): string {
  const views = [...new Set(listViewsBelow(sql, subjects))];
  const whole = `${views.length > 0 ? `with ${views.join(',\n')}\n` : ''}${sql}`;
  return whole.replace(viewNames, (text, name?: string) => (name === undefined ? text : `"${name}"`));
}

export function formatLedger({ rows, sampledOf, policies, shown, hidden }: Ledger): string {
  const ofSample = sampledOf === undefined ? '' : ` in some pages of about ${sampledOf}`;
  const causes = hidden.map(({ by, rows: count }) => `${count} by ${by}`).join(', ');
  const unseen = policies
    ? `; beside rows that ${policies.join(', ')} of row-level security may hide from ADMIN_URL`
    : '';
  return `${rows} rows${ofSample}, ${shown} shown${causes === '' ? '' : `; hidden: ${causes}`}${unseen}`;
}

const formatCause = ({ by, rows, ids }: Cause): string => `${rows} by ${by}, such as ${ids.join(', ')}`;

const oddText =
  'More than a tenth of these rows, or all, are not shown: look in the app whether a user would see them.';

/** Names what an operator should look at: nothing is shown, more than a tenth is hidden, or `show` leaves nothing of a value. */
export function listOddities({ table, rows, shown, hidden, open, emptied, shownAlthough }: Ledger): Point[] {
  const unseen = rows - shown;
  const isOdd = rows > 0 && (shown === 0 || unseen * 10 > rows);
  const texts = (some: readonly Cause[]): string => some.map(formatCause).join('; ');
  const lost = emptied.filter(({ whole }) => whole > 0);
  return [
    ...(isOdd ? [askOnce(oddText, { name: table, rows: unseen }, `${unseen} of ${rows}: ${texts(hidden)}`)] : []),
    ...shownAlthough.map((cause) => ({
      text: `rows are shown that should be hidden: ${formatCause(cause)}.`,
      rows: cause.rows,
    })),
    ...open.map((cause) => ({
      text: `rows are shown although a record that they refer to is not: ${formatCause(cause)}. Where it takes them with it, hide them by a condition.`,
      rows: cause.rows,
    })),
    ...lost.map(({ column, whole, values }) => ({
      text: `"show" leaves nothing of ${whole} of ${values} values of ${column}: list their members, or leave the column out.`,
      rows: whole,
    })),
  ];
}

/** Returns a pointer to each leaf of a JSON value, in which a list adds no index, as `show` has them. */
function listLeafPointers(value: unknown, at = ''): string[] {
  if (Array.isArray(value)) return value.flatMap((item) => listLeafPointers(item, at));
  if (typeof value !== 'object' || value === null) return [at];
  return Object.entries(value).flatMap(([name, inner]) => listLeafPointers(inner, at + toPointer([name])));
}

export function countEmptied(column: string, texts: readonly string[], show: readonly string[]): Emptied {
  const isKept = (leaf: string): boolean => show.some((pointer) => leaf === pointer || leaf.startsWith(`${pointer}/`));
  const kept = texts
    .flatMap(parseJson)
    .map((value) => listLeafPointers(value))
    .filter((leaves) => leaves.length > 0)
    .map((leaves) => leaves.filter(isKept).length / leaves.length);
  const count = (holds: (fraction: number) => boolean): number => kept.filter(holds).length;
  return {
    column,
    values: kept.length,
    whole: count((fraction) => fraction === 0),
    part: count((fraction) => fraction > 0 && fraction < 1),
  };
}
