import { toSnakeCase } from '../../../base/words.js';
import { listKeptConditions, listKeptRules } from '../columns/deletions.js';
import { isPlain, showId } from '../columns/types.js';
import { getNames, toSingular } from '../names.js';
import type { Column, Point, ReferenceStep, ShownRows, Subject, SurveySoFar, Table } from '../schema.js';
import { askAbout, type DatabaseView, type JudgedView } from '../schema.js';
import { alias, getAlias, isOptional, joinFrom, joinWorkspace } from '../sql.js';
import { isPeople, listReferences } from '../tables/workspace-paths.js';

// The public face of hiding/: `addHidings` finds the conditions of a row to be shown, and ledger.ts counts the rows that each of them
// hides. A row is shown if it is not deleted itself and the view of each record above it shows that record.

/** A row refers to this record. */
interface RecordAbove {
  readonly table: Table;
  readonly columns: readonly Column[];
  readonly references: readonly Column[];
  /** The deletion of the record takes the row with it; otherwise nothing tells whether it does. */
  readonly takes: boolean;
}

type RowConditions = Pick<ShownRows, 'way' | 'own' | 'above'>;
type BareSubject = Omit<Subject, 'shown'>;

/** A view reads the records on the way to the workspace, and the others above it, from their views, if these hide any. */
export function addHidings(subjects: readonly BareSubject[], known: SurveySoFar): Subject[] {
  const conditions = new Conditions(subjects, known);
  return subjects.map((subject) => ({ ...subject, shown: conditions.describeShown(subject.table) }));
}

/** A joined view is a condition of the statement already. */
export function listViewConditions({ own, above }: Pick<ShownRows, 'own' | 'above'>, withJoined = false): string[] {
  return [...own, ...above].flatMap(({ unless, isJoined }) => (isJoined && !withJoined ? [] : [unless]));
}

/** No row goes with its author, nor with a record that it outlives (ON DELETE SET NULL). */
function listRecordsAbove(table: Table, { tables, tenant }: Pick<SurveySoFar, 'tables' | 'tenant'>): RecordAbove[] {
  return listReferences(table, tables).flatMap(
    ({ key, table: above, columns, references, isOfPerson }): RecordAbove[] => {
      const isPart = isNamedAfter(table, above);
      if (above === tenant.root || key.survives || (isPeople(above) && !isPart)) return [];
      return [{ table: above, columns, references, takes: key.cascades && (isPart || !isOfPerson) }];
    },
  );
}

/** Finds that "order_lines" is named after "orders". */
function isNamedAfter(table: Table, above: Table): boolean {
  return toSnakeCase(table.name).startsWith(`${toSingular(toSnakeCase(above.name))}_`);
}

/** Counts the steps before a person whose deletion takes nothing: neither this person nor a record beyond hides the row. */
function countRecordSteps(table: Table, steps: readonly ReferenceStep[]): number {
  const from = [table, ...steps.map((step) => step.table)];
  const person = steps.findIndex((step, i) => isPeople(step.table) && !isNamedAfter(from[i] as Table, step.table));
  return person < 0 ? steps.length : person;
}

/**
 * A view is created after the views that it reads, so references in a circle are left out: those first that can be NULL. A table may refer
 * to itself.
 */
function dropCycles(known: SurveySoFar): ReadonlyMap<Table, readonly RecordAbove[]> {
  const { tables, workspaces } = known;
  const stepsOf = (table: Table): readonly ReferenceStep[] => workspaces.get(table)?.steps ?? [];
  const reads = new Map(tables.map((table) => [table, new Set(stepsOf(table).map((step) => step.table))]));
  const reaches = (from: Table, to: Table, seen = new Set([from])): boolean =>
    from === to || [...(reads.get(from) ?? [])].some((next) => !seen.has(next) && reaches(next, to, seen.add(next)));
  const canBeNull = ({ columns }: RecordAbove): number => Number(!columns.every(({ notNull }) => notNull));
  const references = tables.flatMap((table) => {
    const [step] = stepsOf(table);
    const isStep = ({ columns }: RecordAbove): boolean => !step?.isBack && columns.includes(step?.from as Column);
    return listRecordsAbove(table, known).flatMap((above) => (isStep(above) ? [] : [{ table, above }]));
  });
  const acyclic = references
    .sort((a, b) => canBeNull(a.above) - canBeNull(b.above))
    .filter(({ table, above }) => {
      if (!above.takes || above.table === table) return true;
      if (reaches(above.table, table)) return false;
      reads.get(table)?.add(above.table);
      return true;
    });
  return new Map(tables.map((table) => [table, acyclic.flatMap((each) => (each.table === table ? [each.above] : []))]));
}

/** Leads the step to a record as its view shows it. */
function pointStepTo(step: ReferenceStep, view: string): ReferenceStep {
  return { ...step, table: { ...step.table, quoted: view }, to: { ...step.to, quoted: 'id' } };
}

/** A subquery reads a record above here: in its view, which shows kept ones alone, or in its table. */
interface RecordSource {
  readonly rows: string;
  readonly keys: readonly string[];
  readonly workspace: string;
  readonly where: readonly string[];
}

/**
 * Composes the conditions of the rows of each table. Example: `lines` have deleted_at, and a key to `orders` ON DELETE CASCADE; the view of
 * orders hides deleted ones. Of `lines`, `own` is `t.deleted_at is null`, and `above` has one condition, by "public"."orders":
 * `(select true from records.orders o where o.id = t.order_id)`.
 */
class Conditions {
  readonly #known: SurveySoFar;
  readonly #above: ReadonlyMap<Table, readonly RecordAbove[]>;
  readonly #views: ReadonlyMap<Table, { readonly id: Column; readonly view: string }>;
  readonly #rows = new Map<Table, RowConditions>();

  constructor(subjects: readonly BareSubject[], known: SurveySoFar) {
    const viewOf = (table: Table): string => `records.${getNames({ table }, { subjects }).view}`;
    this.#known = known;
    this.#above = dropCycles(known);
    this.#views = new Map(subjects.map(({ table, id }) => [table, { id, view: viewOf(table) }]));
  }

  describeShown(table: Table): ShownRows {
    const rows = this.#getConditions(table);
    const open = (this.#above.get(table) ?? []).flatMap((to) => {
      const unless = to.takes ? undefined : this.#composeAbove(to, alias, joinWorkspace(rows.way), 0);
      return unless === undefined ? [] : [{ by: nameOpen(to.table, to.columns), unless }];
    });
    return { ...rows, open };
  }

  #getConditions(table: Table): RowConditions {
    const rows = this.#rows.get(table) ?? this.#makeConditions(table, 0);
    this.#rows.set(table, rows);
    return rows;
  }

  /** Is undefined if there is no view, the view hides nothing, or no plain column of it has the ids. */
  #findView(table: Table, references: readonly Column[]): string | undefined {
    const { id, view } = this.#views.get(table) ?? {};
    const [key, ...others] = references.filter((column) => column !== this.#known.tenant.columnIn(table));
    if (id === undefined || key !== id || others.length > 0 || !isPlain({ of: id, select: showId(id).select }))
      return undefined;
    return listViewConditions(this.#getConditions(table), true).length > 0 ? view : undefined;
  }

  /** Leads to the workspace through the tables `passed` and, from there, through the view of the first record that hides rows. */
  #findWay(table: Table): { way: ShownRows['way']; passed: readonly Table[]; viewed?: Table } {
    const { tenant, steps = [] } = this.#known.workspaces.get(table) ?? {};
    const records = steps.slice(0, countRecordSteps(table, steps));
    for (const [at, step] of records.entries()) {
      const view = isOptional(steps, at) ? undefined : this.#findView(step.table, [step.to]);
      if (view === undefined) continue;
      const way = {
        steps: [...steps.slice(0, at), pointStepTo(step, view)],
        tenant: { ...(tenant as Column), quoted: 'workspace_id' },
      };
      return { way, passed: records.slice(0, at).map((passed) => passed.table), viewed: step.table };
    }
    return { way: { steps, tenant }, passed: records.map((step) => step.table) };
  }

  /** In a subquery at this depth the row has another alias. */
  #makeConditions(table: Table, depth: number, isSelf = false): RowConditions {
    const row = depth === 0 ? alias : `o${depth}`;
    const { way, passed, viewed } = this.#findWay(table);
    const orNoRow = (steps: number, sql: string): string =>
      isOptional(way.steps, steps - 1)
        ? `(${getAlias(steps, row)}.${way.steps[steps - 1]?.to.quoted} is null or ${sql})`
        : sql;
    const onWay = passed.flatMap((from, i) =>
      listKeptConditions(from, getAlias(i + 1, row)).map((sql) => ({ by: from.quoted, unless: orNoRow(i + 1, sql) })),
    );
    const joined = viewed && {
      by: viewed.quoted,
      unless: `${getAlias(way.steps.length, row)}.workspace_id is not null`,
      isJoined: true as const,
    };
    const linked = [table, ...passed].flatMap((from, i) =>
      (this.#above.get(from) ?? []).flatMap((to) => {
        const isAsked = to.takes && !(isSelf && to.table === table);
        const kept = isAsked && this.#composeAbove(to, getAlias(i, row), way.tenant && joinWorkspace(way, row), depth);
        return kept ? [{ by: to.table.quoted, unless: orNoRow(i, kept) }] : [];
      }),
    );
    const keptRules = listKeptRules(table);
    const own = keptRules.map(({ column, kept }) => ({ by: column.name, unless: kept(`${row}.${column.quoted}`) }));
    return { way, own, above: [...onWay, ...(joined ? [joined] : []), ...linked] };
  }

  /**
   * Composes a subquery that is true if the record above is shown; undefined if no such record is ever hidden. The subquery finds the
   * record by its key alone, because a deleted record takes its rows with it whatever its workspace is. It is no join, because
   * PostgreSQL would then no longer read the list in its order.
   */
  #composeAbove(to: RecordAbove, from: string, workspace: string | undefined, depth: number): string | undefined {
    const { table, columns } = to;
    const isSelf = (this.#above.get(table) ?? []).includes(to);
    const record = (isSelf ? undefined : this.#readInView(to)) ?? this.#readInTable(to, depth + 1, isSelf);
    if (record === undefined) return undefined;
    // `check` follows foreign keys alone, so where the workspace rests on a guess it must be compared.
    const isGuess = this.#known.workspaces.get(table)?.steps.some((step) => step.isGuess);
    const sameWorkspace = isGuess && workspace ? [`${record.workspace} = ${workspace}`] : [];
    const match = (values: readonly string[]): string =>
      [...record.keys.map((key, i) => `${key} = ${values[i]}`), ...sameWorkspace].join(' and ');
    const whereRecord = match(columns.map(({ quoted }) => `${from}.${quoted}`));
    const allKept = record.where.join(' and ');
    const next = columns.map(({ quoted }, i) => `o${depth + 1}.${quoted} as k${i}`).join(', ');
    const whereNext = match(columns.map((_, i) => `up.k${i}`));
    // In a table that refers to itself all records above must be kept, up to the last.
    const isShown = isSelf
      ? `(with recursive up as (select ${next}, ${allKept} as kept${record.rows} where ${whereRecord}
      union select ${next}, ${allKept}${record.rows} join up on ${whereNext}) select bool_and(kept is true) from up)`
      : `(select true${record.rows} where ${[whereRecord, ...record.where].join(' and ')})`;
    const refersToNone = columns.flatMap(({ notNull, quoted }) => (notNull ? [] : [`${from}.${quoted} is null`]));
    return refersToNone.length === 0 ? isShown : `(${[...refersToNone, isShown].join(' or ')})`;
  }

  #readInView({ table, references }: RecordAbove): RecordSource | undefined {
    const view = this.#findView(table, references);
    const { id } = this.#views.get(table) ?? {};
    const keys = references.map((column) => (column === id ? 'o.id' : 'o.workspace_id'));
    return view === undefined ? undefined : { rows: ` from ${view} o`, keys, workspace: 'o.workspace_id', where: [] };
  }

  #readInTable({ table, references }: RecordAbove, depth: number, isSelf: boolean): RecordSource | undefined {
    const { way, own, above } = this.#makeConditions(table, depth, isSelf);
    const where = listViewConditions({ own, above });
    const row = `o${depth}`;
    const keys = references.map(({ quoted }) => `${row}.${quoted}`);
    const rows = `\n${joinFrom(table.quoted, way, row)}`;
    return where.length === 0 ? undefined : { rows, keys, workspace: joinWorkspace(way, row), where };
  }
}

/**
 * Returns conditions that the views of the records above show these, for `check --rows`: it goes by the views of today, which a person may
 * have edited.
 */
export function listFollowed(
  { table, steps: [step] }: Subject,
  known: SurveySoFar,
  viewsOf: (table: Table) => readonly DatabaseView[],
): Pick<JudgedView, 'taken' | 'open'> {
  const conditions = listRecordsAbove(table, known).flatMap(({ table: to, columns, references, takes }) => {
    const shows = viewsOf(to).map(({ name, id }) => `exists (select from ${name} v where v.id = ${id})`);
    if (shows.length === 0) return [];
    const refersToNone = columns.flatMap(({ notNull, quoted }) => (notNull ? [] : [`${alias}.${quoted} is null`]));
    const refersToIt = references.map(({ quoted }, i) => `o.${quoted} = ${alias}.${columns[i]?.quoted}`).join(' and ');
    const shownSql = `select ${alias}.* from ${to.quoted} ${alias} where ${shows.join(' or ')}`;
    const unless = `(${[...refersToNone, `exists (select from (${shownSql}) o where ${refersToIt})`].join(' or ')})`;
    const isTaken = takes || (!step?.isBack && columns.includes(step?.from as Column));
    return [{ isTaken, by: isTaken ? `the record in ${to.quoted}` : nameOpen(to, columns), unless }];
  });
  return { taken: conditions.filter(({ isTaken }) => isTaken), open: conditions.filter(({ isTaken }) => !isTaken) };
}

const nameOpen = ({ quoted }: Table, columns: readonly Column[]): string => `${columns[0]?.name} (${quoted})`;

export function describeAbove(table: Table, { above }: ShownRows): Point | false {
  const names = [...new Set(above.map(({ by }) => by))];
  return askAbout('Rows whose record in these tables counts as deleted are not shown.', table, names);
}
