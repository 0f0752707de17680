import type pg from 'pg';

// `findScans` reads the scans of a plan. Of `select p.* from app.parts p join app.orders o on o.id = p.order_id where o.workspace_id =
// gateway.workspace()` the plan has an Index Scan on orders o with the Index Cond (o.workspace_id = gateway.workspace()), and an Index
// Scan on parts p with (p.order_id = o.id). It gives the tables o and p, and these two comparisons, which scans.ts judges.

export interface QueryPlan {
  readonly 'Node Type': string;
  readonly 'Parent Relationship'?: string;
  readonly 'Relation Name'?: string;
  readonly Schema?: string;
  readonly 'CTE Name'?: string;
  readonly 'Subplan Name'?: string;
  readonly 'Join Type'?: string;
  readonly Output?: readonly string[];
  readonly Alias?: string;
  readonly 'Index Cond'?: string;
  readonly 'Recheck Cond'?: string;
  readonly 'Hash Cond'?: string;
  readonly 'Merge Cond'?: string;
  readonly 'Join Filter'?: string;
  readonly Filter?: string;
  readonly Plans?: readonly QueryPlan[];
}

/** Plans a statement without running it. The plan names schemas, and what each node gives. */
export async function readPlan(client: pg.Client, statement: string): Promise<QueryPlan> {
  const text = `explain (verbose, costs off, format json) ${statement}`;
  const { rows } = await client.query<{ 'QUERY PLAN': [{ Plan: QueryPlan }] }>(text);
  return rows[0]?.['QUERY PLAN'][0].Plan as QueryPlan;
}

type Term = { readonly isWorkspace: true } | { readonly alias: string; readonly column: string };

/** `column` equals `other` in all rows that the scan gives to the rest of the plan. */
interface Comparison {
  readonly alias: string;
  readonly column: string;
  readonly other: Term;
}

export interface Scans {
  /** The table, as "schema.table", of each alias. */
  readonly tables: ReadonlyMap<string, string>;
  /** The aliases of the tables in each subquery or CTE, by its alias. */
  readonly subqueries: ReadonlyMap<string, readonly string[]>;
  readonly comparisons: readonly Comparison[];
  readonly functions: readonly string[];
  /** Aliases of rows of which the plan only learns whether one exists. */
  readonly existenceTests: ReadonlySet<string>;
}

export function findScans(plan: QueryPlan): Scans {
  const nodes = listNodes(plan);
  const ctes = new Map(
    nodes.flatMap((node) => (node['Subplan Name']?.startsWith('CTE ') ? [[node['Subplan Name'].slice(4), node]] : [])),
  );
  const verifiedParameters = new Set(nodes.filter(readsWallKeys).map(findParameter));
  const workspaces = new Set(nodes.flatMap((node) => listWorkspaceParameters(node, verifiedParameters)));
  const tables = new Map<string, string>();
  const subqueries = new Map<string, string[]>();
  for (const node of nodes) {
    const { Alias: alias, Schema: schema, 'Relation Name': relation, 'CTE Name': cte } = node;
    if (alias === undefined || readsWallKeys(node)) continue;
    if (relation !== undefined) tables.set(alias, `${schema}.${relation}`);
    else subqueries.set(alias, listAliases((cte === undefined ? undefined : ctes.get(cte)) ?? node));
  }
  const comparisons = nodes.flatMap((node) => listComparisons(node, workspaces));
  return {
    tables,
    subqueries,
    comparisons,
    functions: [...new Set(listTexts(plan).flatMap(listCalls))],
    existenceTests: new Set(nodes.filter(isExistenceTest).flatMap(listAliases)),
  };
}

function listTexts(value: unknown): string[] {
  if (typeof value === 'object' && value !== null) return Object.values(value).flatMap(listTexts);
  return typeof value === 'string' ? [value] : [];
}

/** Matches literals, calls with both names as PostgreSQL quotes them, and other quoted names, so that no match begins within another. */
const calls = /'(?:[^']|'')*'|("(?:[^"]|"")+"|\b[a-z_]\w*)\.("(?:[^"]|"")+"|[a-z_]\w*)\(|"(?:[^"]|"")*"/g;

/** Lists the functions of an expression, as "schema.name". */
function listCalls(text: string): string[] {
  return [...text.matchAll(calls)].flatMap(([, ...names]) => (names[1] ? [names.map(unquoteName).join('.')] : []));
}

/** Recognizes `(select true from … where …)`, by which a row goes with the deleted record above it. */
function isExistenceTest({ 'Parent Relationship': relationship, Output: output = [] }: QueryPlan): boolean {
  return relationship === 'SubPlan' && /^(true|bool_and\(.*\))$/.test(output.join());
}

export function listNodes(plan: QueryPlan): QueryPlan[] {
  return [plan, ...(plan.Plans ?? []).flatMap(listNodes)];
}

function listAliases(plan: QueryPlan): string[] {
  return listNodes(plan).flatMap(({ Alias, 'Relation Name': relation }) => (relation && Alias ? [Alias] : []));
}

/** Recognizes gateway.verified_workspace, which reads the keys of the wall. */
function readsWallKeys({ Schema: schema, 'Relation Name': relation }: QueryPlan): boolean {
  return schema === 'gateway' && relation === 'wall_keys';
}

/** Returns "$0", from PostgreSQL 17 on "(InitPlan 1).col1". */
function findParameter({ 'Subplan Name': name = '' }: QueryPlan): string | undefined {
  const [, initPlan, parameter] = /^(InitPlan \d+)(?: \(returns (\$\d+)\))?$/.exec(name) ?? [];
  return parameter ?? (initPlan && `(${initPlan}).col1`);
}

/** Lists the parameters with the session's workspace, by the setting with a MAC or the function. */
function listWorkspaceParameters(plan: QueryPlan, verified: ReadonlySet<string | undefined>): string[] {
  const name = findParameter(plan);
  const { Output: [output = '', ...others] = [] } = plan;
  const [, first, second] = /^COALESCE\((\(.*\)\.col1|\$\d+), (.*)\)$/.exec(stripCasts(output)) ?? [];
  const isSessionWorkspace =
    first === undefined ? isWorkspace(stripCasts(output)) : verified.has(first) && isWorkspace(second as string);
  return name !== undefined && isSessionWorkspace && others.length === 0 ? [name] : [];
}

const isWorkspace = (text: string): boolean => text === 'gateway.workspace()';

/** The condition of such a join binds the rows of this side only; other joins bind both. */
const boundSide: Readonly<Record<string, string>> = {
  Left: 'Inner',
  Anti: 'Inner',
  Right: 'Outer',
  'Right Anti': 'Outer',
  Full: 'neither',
};

/** Lists comparisons that hold. A condition of an outer join binds only its nullable side. */
function listComparisons(node: QueryPlan, workspaces: ReadonlySet<string>): Comparison[] {
  const { Alias, Plans = [], 'Join Type': join } = node;
  const listAliasesOf = (relationship: string): Set<string> => {
    const nodes = Plans.filter((each) => each['Parent Relationship'] === relationship).flatMap(listNodes);
    return new Set(nodes.flatMap((each) => each.Alias ?? []));
  };
  const bound =
    Alias !== undefined
      ? new Set([Alias])
      : join && join in boundSide
        ? listAliasesOf(boundSide[join] as string)
        : undefined;
  const joined = ['Index Cond', 'Recheck Cond', 'Hash Cond', 'Merge Cond', 'Join Filter'] as const;
  const conditions = joined.map((key) => node[key]);
  // Rows of an inner nested loop met the condition of the scan inside it, on both sides.
  const isInnerLoop = join === 'Inner' && node['Node Type'] === 'Nested Loop';
  const [inside] = Plans.filter((each) => isInnerLoop && each['Parent Relationship'] === 'Inner').map(skipMemoize);
  return [
    ...listEqualities([inside?.['Index Cond'], inside?.['Recheck Cond']], workspaces),
    ...listEqualities([...conditions, Alias === undefined ? undefined : node.Filter], workspaces).filter(
      ({ alias }) => bound?.has(alias) ?? true,
    ),
    ...(Alias === undefined ? listEqualities([node.Filter], workspaces) : []),
  ];
}

function skipMemoize(plan: QueryPlan): QueryPlan {
  return /^(Memoize|Materialize)$/.test(plan['Node Type']) ? skipMemoize(plan.Plans?.[0] as QueryPlan) : plan;
}

function listEqualities(conditions: readonly (string | undefined)[], workspaces: ReadonlySet<string>): Comparison[] {
  return conditions
    .flatMap((condition) => (condition === undefined ? [] : splitConjuncts(condition)))
    .flatMap((conjunct) => {
      const sides = splitOutside(conjunct, ' = ');
      if (sides.length !== 2) return [];
      const [left, right] = sides.map((side) => parseTerm(side, workspaces)) as [Term | null, Term | null];
      if (left === null || right === null) return [];
      return [
        ...('alias' in left ? [{ ...left, other: right }] : []),
        ...('alias' in right ? [{ ...right, other: left }] : []),
      ];
    });
}

/** Opens `coalesce(condition, false)`, which holds when the condition does. */
function splitConjuncts(condition: string): string[] {
  const inner = stripBrackets(condition);
  const [, coalesced] = /^COALESCE\((.*), false\)$/.exec(inner) ?? [];
  if (coalesced !== undefined && splitOutside(coalesced, ', ').length === 1) return splitConjuncts(coalesced);
  const pieces = splitOutside(inner, ' AND ');
  return pieces.length === 1 ? [inner] : pieces.flatMap(splitConjuncts);
}

function parseTerm(text: string, workspaces: ReadonlySet<string>): Term | null {
  const [, only] = /^ANY \(ARRAY\[(.*)\]\)$/.exec(text) ?? [];
  const term = stripCasts(only ?? text);
  if (isWorkspace(term) || workspaces.has(term) || workspaces.has(text)) return { isWorkspace: true };
  const [, alias, column] = /^("(?:[^"]|"")+"|\w+)\.("(?:[^"]|"")+"|\w+)$/.exec(term) ?? [];
  return alias === undefined ? null : { alias: unquoteName(alias), column: unquoteName(column as string) };
}

export function unquoteName(identifier: string): string {
  return identifier.startsWith('"') ? identifier.slice(1, -1).replaceAll('""', '"') : identifier;
}

/** Removes casts that keep the whole value, and parentheses. */
function stripCasts(text: string): string {
  const inner = stripBrackets(text);
  const [, cast] = /^(.*)::[\w ."]+$/.exec(inner) ?? [];
  return cast === undefined || !isBalanced(cast) ? inner : stripCasts(cast);
}

function stripBrackets(text: string): string {
  return /^\(.*\)$/s.test(text) && isBalanced(text.slice(1, -1)) ? stripBrackets(text.slice(1, -1)) : text;
}

function isBalanced(text: string): boolean {
  let depth = 0;
  for (const [piece] of text.matchAll(/'(?:[^']|'')*'|"(?:[^"]|"")*"|[([\])]/g)) {
    depth += piece === '(' || piece === '[' ? 1 : piece === ')' || piece === ']' ? -1 : 0;
    if (depth < 0) return false;
  }
  return depth === 0;
}

/** Splits outside of parentheses, brackets and quotes. */
function splitOutside(text: string, separator: string): string[] {
  return text.split(separator).reduce<string[]>((pieces, piece) => {
    const last = pieces.at(-1);
    if (last === undefined || (isBalanced(last) && !isOpenQuote(last))) pieces.push(piece);
    else pieces[pieces.length - 1] = last + separator + piece;
    return pieces;
  }, []);
}

function isOpenQuote(text: string): boolean {
  return (text.replace(/"(?:[^"]|"")*"/g, '').match(/'/g)?.length ?? 0) % 2 === 1;
}
