import type pg from 'pg';
import { getCorrection } from '../postgres/database-errors.js';
import { fail, type Item, readCheckSql, sumUp } from './finding.js';
import { runReadOnly } from './session.js';

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

/** With these settings plans name every scan, also of partitions, and the schemas of functions. */
const planned = `set local search_path = ''; set local quote_all_identifiers = off; set local max_parallel_workers_per_gather = 0`;

type Term = { readonly isWorkspace: true } | { readonly alias: string; readonly column: string };

/** `column` equals `other` in all rows that the scan gives to the rest of the plan. */
interface Comparison {
  readonly alias: string;
  readonly column: string;
  readonly other: Term;
}

interface Scans {
  /** The table, as "schema.table", of each alias. */
  readonly tables: ReadonlyMap<string, string>;
  /** The aliases of the tables in each subquery or CTE, by its alias. */
  readonly subqueries: ReadonlyMap<string, readonly string[]>;
  readonly comparisons: readonly Comparison[];
  readonly functions: readonly string[];
  /** Aliases of rows of which the plan only learns whether one exists. */
  readonly verdicts: ReadonlySet<string>;
}

interface RelationRow {
  readonly name: string;
  readonly columns: readonly string[];
  readonly indirect: boolean;
  /** The function reads as its owner; its name is "schema.name()". */
  readonly isDefiner: boolean;
  readonly keys: readonly { readonly own: string[]; readonly name: string; readonly other: string[] }[];
}

function findScans(plan: QueryPlan): Scans {
  const nodes = listNodes(plan);
  const ctes = new Map(
    nodes.flatMap((node) => (node['Subplan Name']?.startsWith('CTE ') ? [[node['Subplan Name'].slice(4), node]] : [])),
  );
  const verified = new Set(nodes.filter(readsWallKeys).map(findParameter));
  const workspaces = new Set(nodes.flatMap((node) => listWorkspaceParameters(node, verified)));
  const tables = new Map<string, string>();
  const subqueries = new Map<string, string[]>();
  for (const node of nodes) {
    const { Alias: alias, Schema: schema, 'Relation Name': relation, 'CTE Name': cte } = node;
    if (alias === undefined || readsWallKeys(node)) continue;
    if (relation !== undefined) tables.set(alias, `${schema}.${relation}`);
    else subqueries.set(alias, listAliases((cte === undefined ? undefined : ctes.get(cte)) ?? node));
  }
  const comparisons = nodes.flatMap((node) => listComparisons(node, workspaces));
  const text = JSON.stringify(nodes.map(({ Plans, ...rest }) => rest));
  const functions = [...text.matchAll(/\b([a-z_]\w*\.[a-z_]\w*)\(/g)].map(([, name]) => name as string);
  return {
    tables,
    subqueries,
    comparisons,
    functions: [...new Set(functions)].filter((name) => name !== 'gateway.workspace'),
    verdicts: new Set(nodes.filter(isVerdict).flatMap(listAliases)),
  };
}

/** Recognizes `(select true from … where …)`, by which a row goes with the deleted record above it. */
function isVerdict({ 'Parent Relationship': relationship, Output: output = [] }: QueryPlan): boolean {
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
  const isOne =
    first === undefined ? isWorkspace(stripCasts(output)) : verified.has(first) && isWorkspace(second as string);
  return name !== undefined && isOne && others.length === 0 ? [name] : [];
}

function isWorkspace(text: string): boolean {
  return text === 'gateway.workspace()';
}

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
  const side = (relationship: string): Set<string> =>
    new Set(
      Plans.filter((each) => each['Parent Relationship'] === relationship)
        .flatMap(listNodes)
        .flatMap((each) => each.Alias ?? []),
    );
  const bound =
    Alias !== undefined ? new Set([Alias]) : join && join in boundSide ? side(boundSide[join] as string) : undefined;
  const conditions = [
    node['Index Cond'],
    node['Recheck Cond'],
    node['Hash Cond'],
    node['Merge Cond'],
    node['Join Filter'],
  ];
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
      const sides = split(conjunct, ' = ');
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
  if (coalesced !== undefined && split(coalesced, ', ').length === 1) return splitConjuncts(coalesced);
  const pieces = split(inner, ' AND ');
  return pieces.length === 1 ? [inner] : pieces.flatMap(splitConjuncts);
}

function parseTerm(text: string, workspaces: ReadonlySet<string>): Term | null {
  const [, only] = /^ANY \(ARRAY\[(.*)\]\)$/.exec(text) ?? [];
  const term = stripCasts(only ?? text);
  if (isWorkspace(term) || workspaces.has(term) || workspaces.has(text)) return { isWorkspace: true };
  const [, alias, column] = /^("(?:[^"]|"")+"|\w+)\.("(?:[^"]|"")+"|\w+)$/.exec(term) ?? [];
  return alias === undefined ? null : { alias: unquoteName(alias), column: unquoteName(column as string) };
}

function unquoteName(identifier: string): string {
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

/** Splits only outside parentheses, brackets and quotes. */
function split(text: string, separator: string): string[] {
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

/**
 * Proves tables of a plan one after the other until none is added: by a column that is compared with the workspace, or with the same
 * column of a proven table; or by a foreign key to a proven row. A subquery is proven by one of its tables. Lists the others.
 */
function listUncompared(scans: Scans, relations: ReadonlyMap<string, RelationRow>): string[] {
  const { tables, subqueries, comparisons, verdicts } = scans;
  const relationOf = (alias: string): RelationRow | undefined => relations.get(tables.get(alias) ?? '');
  const needy = [...tables.keys()].filter((alias) => {
    const relation = relationOf(alias);
    return relation !== undefined && (relation.columns.length > 0 || relation.indirect);
  });
  const proven = new Set<string>();
  const isProven = (alias: string): boolean => {
    const below = subqueries.get(alias);
    return below === undefined ? proven.has(alias) : below.length > 0 && below.some((each) => proven.has(each));
  };
  const holds = (alias: string): boolean => {
    const { columns, indirect, keys } = relationOf(alias) as RelationRow;
    const ofAlias = comparisons.filter((comparison) => comparison.alias === alias);
    const isCompared = ofAlias.some(({ column, other }) => {
      if (!columns.includes(column)) return false;
      if ('isWorkspace' in other) return true;
      return isProven(other.alias) && (relationOf(other.alias)?.columns.includes(other.column) ?? true);
    });
    if (isCompared || !(indirect || verdicts.has(alias))) return isCompared;
    return [...new Set(ofAlias.map(({ other }) => ('alias' in other ? other.alias : '')))]
      .filter(isProven)
      .some((provenAlias) => {
        const name = tables.get(provenAlias);
        if (name === undefined) return true;
        const pairs = ofAlias.flatMap((each) =>
          'alias' in each.other && each.other.alias === provenAlias ? [`${each.column} ${each.other.column}`] : [],
        );
        return keys.some(
          (key) => key.name === name && key.own.every((column, i) => pairs.includes(`${column} ${key.other[i]}`)),
        );
      });
  };
  for (let before = -1; before < proven.size; ) {
    before = proven.size;
    for (const alias of needy) if (!proven.has(alias) && holds(alias)) proven.add(alias);
  }
  return needy
    .filter((alias) => !proven.has(alias))
    .map((alias) => {
      const { name, columns, indirect } = relationOf(alias) as RelationRow;
      return !indirect
        ? `it reads ${name} (${alias}) without comparing ${columns.join(' or ')} with the workspace`
        : `it reads ${name} (${alias}), whose workspace another table tells, without the key of a row of the workspace`;
    });
}

/** Reads the plans, because they show inlined functions and conditions that cannot be pushed down as they run. */
export async function scanItems(client: pg.Client, views: readonly string[]): Promise<Item[]> {
  const scansOfViews = new Map<string, Scans>();
  const items: Item[] = [];
  const { rows } = await client.query<{ name: string; columns: string }>(readableColumns, [views]);
  for (const { name, columns } of rows) {
    const plan = async (): Promise<Item[]> => {
      scansOfViews.set(name, findScans(await readPlan(client, `select ${columns} from ${name}`)));
      return [];
    };
    const refused = (error: Error): Item[] => [
      { ...fail('scans', `It cannot be planned: ${error.message}.`, name), advice: getCorrection(error) },
    ];
    items.push(...(await runReadOnly(client, { settings: planned, object: name }, plan, refused)));
  }
  const relations = await readRelations(client, [...scansOfViews.values()]);
  for (const [name, scans] of scansOfViews) {
    const definers = scans.functions.filter((each) => relations.get(`${each}()`)?.isDefiner);
    const faults = [
      ...listUncompared(scans, relations),
      ...definers.map((each) => `it calls ${each}(), which reads as its owner, and whose scans no check sees`),
    ];
    items.push(sumUp('scans', faults, `Each of ${scans.tables.size} scans is of one workspace.`, name));
  }
  return items;
}

const readableColumns = `select v.name, string_agg(quote_ident(a.attname), ', ') as columns
  from unnest($1::text[]) with ordinality v (name, place) join pg_attribute a on a.attrelid = to_regclass(v.name) and a.attnum > 0
  where has_column_privilege(a.attrelid, a.attnum, 'select') group by v.name, v.place order by v.place`;

async function readRelations(client: pg.Client, all: readonly Scans[]): Promise<ReadonlyMap<string, RelationRow>> {
  const compared = all.flatMap(({ tables, comparisons }) =>
    comparisons.flatMap(({ alias, column, other }) =>
      'isWorkspace' in other && tables.has(alias) ? [[tables.get(alias), column]] : [],
    ),
  );
  const { rows } = await client.query<RelationRow>(readCheckSql('scans'), [
    all.flatMap(({ tables }) => [...tables.values()]),
    compared.map(([table]) => table),
    compared.map(([, column]) => column),
    all.flatMap(({ functions }) => functions),
  ]);
  return new Map(rows.map((row) => [row.name, row]));
}
