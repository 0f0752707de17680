import { isNamed } from '../../../base/words.js';
import type { Column, ForeignKey, ReferenceStep, Subject, Table, Tenant, WorkspaceOf } from '../schema.js';
import { askAbout, askOnce, findColumn, listKeysTo, provesAll } from '../schema.js';
import type { Points } from '../sql.js';

// How rows of a table without a column of the workspace belong to one: by required references. Example: `orders` have company_id, `lines`
// have order_id and author_id. The path of `lines` is the step order_id to `orders`, with the tenant company_id. Their author could tell a
// workspace, too, but a person can move to another one, so authors are asked only if no record tells it.

const stepsMax = 4; // each step is a join in every list

export function isPeople({ name, columns }: Table): boolean {
  const has = (purpose: 'email' | 'secret'): boolean => columns.some((column) => isNamed(purpose, column.name));
  return isNamed('people', name) || (has('email') && has('secret') && isNamed('users', name));
}

/** Each round also takes the references that those before it did not: references back, then people. */
const rounds = [
  { takesBack: false, takesPeople: false },
  { takesBack: true, takesPeople: false },
  { takesBack: true, takesPeople: true },
];

/** Takes the column of the table itself, or the column to which its required references lead in the fewest steps of the first round. */
export function findWorkspaces(
  tables: readonly Table[],
  { columnIn, root, rootId }: Pick<Tenant, 'columnIn' | 'root' | 'rootId'>,
  keysOf = mapKeys(tables),
): ReadonlyMap<Table, WorkspaceOf> {
  const toldByOthers = findToldTables(tables, columnIn);
  const workspaces = new Map<Table, WorkspaceOf>();
  for (const table of tables) {
    const tenant = columnIn(table);
    if (tenant) workspaces.set(table, { tenant, steps: [], rivals: [] });
  }
  for (const round of rounds)
    for (let steps = 0; steps < stepsMax; steps++) {
      const nearer = new Map(workspaces);
      if (root && rootId && round.takesBack) nearer.set(root, { tenant: rootId, steps: [], rivals: [] });
      for (const table of tables) {
        const keys = keysOf.get(table) ?? [];
        const unproven = toldByOthers.has(table) ? keys.filter(({ step }) => step.isGuess) : [];
        const way = nearer.has(table) ? undefined : findWay(keys, unproven, nearer, round);
        if (way) workspaces.set(table, way);
      }
    }
  return workspaces;
}

function findWay(
  keys: readonly ReferenceKey[],
  unproven: readonly ReferenceKey[],
  nearer: ReadonlyMap<Table, WorkspaceOf>,
  { takesBack, takesPeople }: (typeof rounds)[number],
): WorkspaceOf | undefined {
  // If a guess alone tells which record a row is about, its author must not tell whose row it is.
  if (takesPeople && unproven.some(({ step, isOfPerson }) => !isOfPerson && nearer.has(step.table))) return undefined;
  const isTaken = ({ step, isOfPerson }: ReferenceKey): boolean =>
    (takesBack || !step.isBack) && (takesPeople || !isOfPerson);
  const ways = keys.flatMap((key) => {
    const above = nearer.get(key.step.table);
    if (above === undefined || above.steps.length >= stepsMax || unproven.includes(key) || !isTaken(key)) return [];
    return [{ tenant: above.tenant, steps: [key.step, ...above.steps], rivals: [], isOfPerson: key.isOfPerson }];
  });
  const way = ways.find(({ isOfPerson }) => !isOfPerson) ?? ways[0];
  const rivals = ways.filter((each) => each !== way && each.isOfPerson === way?.isOfPerson);
  return way && { ...way, rivals };
}

interface ReferenceKey {
  readonly step: ReferenceStep;
  readonly isOfPerson: boolean;
}

export function mapKeys(tables: readonly Table[]): ReadonlyMap<Table, readonly ReferenceKey[]> {
  return new Map(tables.map((table) => [table, [...listRequiredKeys(table, tables), ...listKeysBack(table, tables)]]));
}

/** Finds tables whose foreign keys lead to a workspace: `check` refuses rows that a guessed reference leads to another workspace. */
function findToldTables(tables: readonly Table[], columnIn: Tenant['columnIn']): ReadonlySet<Table> {
  const others = tables.filter((table) => !columnIn(table));
  const reached = new Set(tables.filter((table) => !others.includes(table)).map(({ name }) => name));
  for (let before = -1; before < reached.size; ) {
    before = reached.size;
    for (const { name, foreignKeys } of others)
      if (foreignKeys.some((key) => !key.isGuess && reached.has(key.table))) reached.add(name);
  }
  return new Set(others.filter(({ name }) => reached.has(name)));
}

/** A foreign key between two known tables. */
export interface Reference {
  readonly key: ForeignKey;
  readonly table: Table;
  readonly columns: readonly Column[];
  readonly references: readonly Column[];
  readonly isOfPerson: boolean;
}

export function listReferences(table: Table, tables: readonly Table[]): Reference[] {
  return table.foreignKeys.flatMap((key): Reference[] => {
    const to = tables.find(({ name }) => name === key.table);
    if (to === undefined) return [];
    const columns = key.columns.flatMap((name) => findColumn(table, name) ?? []);
    const references = key.references.flatMap((name) => findColumn(to, name) ?? []);
    const isOfPerson = isPeople(to) || columns.some(({ name }) => isNamed('author', name));
    return [{ key, table: to, columns, references, isOfPerson }];
  });
}

/** A step compares one column, so references of several columns are left out. */
export function listSteps(table: Table, tables: readonly Table[]): ReferenceStep[] {
  return listReferences(table, tables).flatMap(({ table: to, columns: [from, ...others], references: [id] }) =>
    from && id && others.length === 0 ? [{ from, table: to, to: id }] : [],
  );
}

/** Takes required keys of one column: first those whose record takes the row with it, last the guesses. */
function listRequiredKeys(table: Table, tables: readonly Table[]): ReferenceKey[] {
  const rank = ({ key }: Reference): number => (key.cascades ? 0 : key.isGuess ? 2 : 1);
  return listReferences(table, tables)
    .sort((a, b) => rank(a) - rank(b))
    .flatMap(({ key, table: to, columns: [from, ...others], references: [id], isOfPerson }) => {
      if (others.length > 0 || !from?.notNull || !id || to === table) return [];
      return [{ step: { from, table: to, to: id, ...(key.isGuess && { isGuess: true as const }) }, isOfPerson }];
    });
}

/** Takes keys of other tables that refer to this one, if a unique index allows one row for each row of this table. */
function listKeysBack(table: Table, tables: readonly Table[]): ReferenceKey[] {
  return listKeysTo(table, tables).flatMap(({ from: referring, key }): ReferenceKey[] => {
    if (referring === table || key.isGuess || key.columns.length !== 1) return [];
    const [from, to] = [findColumn(table, key.references[0]), findColumn(referring, key.columns[0])];
    const isOfOne = referring.indexes.some((index) => provesAll(index) && index.columns.join() === to?.name);
    if (!from || !to || !isOfOne) return [];
    return [{ step: { from, table: referring, to, isBack: true }, isOfPerson: isPeople(referring) }];
  });
}

/** Names the column of the row, or for a reference back the column of the other table. */
function nameStep({ from, table, to, isBack }: ReferenceStep): string {
  return isBack ? `${table.name}.${to.name}` : from.name;
}

export function describePath({ table, steps, rivals }: Subject): Points {
  if (steps.length === 0) return [];
  const said = (way: readonly ReferenceStep[]): string => way.map(nameStep).join(', ');
  const unproven = 'No foreign key proves what these columns refer to, and the workspace of the row depends on it.';
  const guessed = steps.filter(({ isGuess }) => isGuess).map(({ from }) => from.name);
  return [
    askOnce(
      'The workspace comes from another record, so a list sorts all rows of a workspace: where they are many, give the table a column of the workspace.',
      table,
      said(steps),
    ),
    rivals.length > 0 &&
      askOnce(
        'Several references lead to a workspace, and the first is taken: is it the one that the row belongs to?',
        table,
        [steps, ...rivals.map((rival) => rival.steps)].map(said).join(' before '),
      ),
    askAbout(unproven, table, guessed),
  ];
}
