import knexModule, { type Knex } from 'knex';
import type { Statement } from '../postgres/statement.js';
import type { IdType } from './field-types.js';
import type { OrderColumn, Resource, ResourceSync } from './resource.js';
import { type Bounds, beyond, byBounds, ends, finish, onFirstUse, statementName } from './statements.js';
import { noPartsVersion, partInOrder, partsVersion, sourceColumn, versionOf, viewInOrder } from './walls.js';

const { knex } = knexModule;

/** Rows that a pass examines in one order: those of the view, or those of a view of parts. */
export interface Section {
  readonly order: readonly OrderColumn[];
  /** The planner's estimate of the number of rows, as a plan in JSON. Parameter: horizon. */
  readonly estimate: Statement;
  /** The key so many rows ahead. Parameters: after0/after1, horizon, limit, skip. */
  readonly ahead: Readonly<Record<'all' | 'after', Statement>>;
  /**
   * Keys of the rows of a range that meet the condition, of a view of parts one for each record; the record's id is `idAt`.
   * Parameters: those of `ahead`, until0/until1, and the condition's.
   */
  readonly find: Readonly<Record<Bounds, Statement>>;
  readonly idAt: number;
}

/** The statements of a resource that only sync uses. */
export interface SyncStatements {
  /** Rows that changed, by their own xid and by those of their parts. Parameter of the condition: since. */
  readonly changed: readonly Section[];
  /** Rows whose SHA-256 begins with a prefix. Parameter of the condition: prefixes. */
  readonly hashed: Section;
  /** Count and hash per prefix of a range of `hashed`. Parameter: depth. */
  readonly digest: Readonly<Record<Bounds, Statement>>;
  /** Ids and versions of a range of `hashed`. Parameters: prefixes, limit. */
  readonly versions: Readonly<Record<Bounds, Statement>>;
}

/** A condition in knex's form; with `inTableOrder` on a column that no index has. */
interface Condition extends Pick<Statement, 'inTableOrder'> {
  readonly sql: string;
  readonly bindings: readonly string[];
}

/** A token that is older counts as older than every row: its id could look younger than it is. */
const tokenIdsMax = 4_000_000_000;

/**
 * age() is the difference between the lower 32 bits of an id and of the next id, which stays the same in a transaction. Without its sign it
 * is at most the real age of a row: a row can look younger than it is, and is repeated, but never older. A row that is newer than the next
 * id looks old: it is in the next pass. (Conversion of xmin by way of text costs ten times as much.) The subquery runs once per statement.
 */
const changedSince = (column: string): Condition => ({
  sql: `(age(??)::bigint & 4294967295) <= (select
    case when pg_snapshot_xmax(pg_current_snapshot())::text::bigint - ?::bigint < ${tokenIdsMax}
      then age((?::bigint & 4294967295)::text::xid)::bigint & 4294967295 else 4294967295 end)`,
  bindings: [column, 'since', 'since'],
  inTableOrder: true,
});

/** SHA-256 of a text, 64 hexadecimal digits. */
const hashOf = (text: string): string => `encode(sha256(convert_to(${text}, 'UTF8')), 'hex')`;
/** The id as it is shown. A cast would drop the blanks at the end of a character(n). */
const textOf = (id: string, idType: IdType): string => (idType === 'text' ? `concat(${id})` : `${id}::text`);

/** A resource with sync. */
type Synced = Resource & { readonly sync: ResourceSync };

/** Builds the statements; null for a resource without sync. */
export function compileSyncStatements({ sync, ...given }: Resource): SyncStatements | null {
  if (sync === undefined) return null;
  const resource = { ...given, sync };
  const { name, view } = resource;
  const builder = knex({ client: 'pg' });
  const hash = hashOf(textOf('id', resource.idType));
  const hasPrefix: Condition = { sql: `${hash} ^@ any(?::text[])`, bindings: ['prefixes'] };
  const idColumn: OrderColumn = { column: 'id', type: resource.idType };
  const own = {
    name: `${name}.sync`,
    view,
    order: resource.order,
    inOrder: viewInOrder(resource, keysOf(resource.order), 'asc'),
  };
  // Rows that never change keep the order of the list, whose index they have; others can move in it, and are read by id.
  const hashedOrder = sync.appendOnly ? resource.order : [idColumn];
  const inOrder = viewInOrder(resource, keysOf(hashedOrder), 'asc');
  const hashed = { name: `${name}.hashed`, view, order: hashedOrder, inOrder };
  const horizon: Condition | null = sync.appendOnly && {
    sql: '?? >= ?::timestamptz',
    bindings: [resource.order[0]?.column as string, 'horizon'],
  };
  const parts = Object.entries(sync.parts).map(([part, each]) => {
    const order: OrderColumn[] = [idColumn, { column: 'part_id', type: each.idType }];
    const rows = {
      name: `${name}.${part}`,
      view: each.view,
      order,
      inOrder: partInOrder(each.view).view,
      onePerRecord: true,
    };
    return compileSection(builder, rows, changedSince(sync.xid), null);
  });
  return {
    changed: [compileSection(builder, own, changedSince(sync.xid), horizon), ...parts],
    hashed: compileSection(builder, hashed, hasPrefix, null),
    digest: byBounds((bounds) => digestOf(builder, resource, hashed, bounds)),
    versions: byBounds((bounds) => versionsOf(builder, resource, hashed, bounds)),
  };
}

/** The rows of a view in an order; `name` begins the names of the statements. */
interface Rows {
  readonly name: string;
  readonly view: string;
  readonly order: readonly OrderColumn[];
  /** The view that has the order. */
  readonly inOrder: string;
  /** The view shows parts: of those of one record, the first that meets the condition is enough. */
  readonly onePerRecord?: boolean;
}

function compileSection(builder: Knex, rows: Rows, condition: Condition, horizon: Condition | null): Section {
  const keys = keysOf(rows.order);
  const selected = (view: string, bounds: Bounds, conditions: readonly (Condition | null)[]): Knex.QueryBuilder => {
    const query = bounded(builder, { ...rows, view }, bounds);
    for (const each of conditions) if (each !== null) query.where(builder.raw(each.sql, [...each.bindings]));
    return view === rows.view ? query.select(keys).orderBy(keys) : query.select(keys);
  };
  const ahead = (bounds: 'all' | 'after'): Statement =>
    finish(statementName(rows.name, `ahead-${bounds}`), selected(rows.inOrder, bounds, [horizon]), ['limit', 'skip']);
  const find = (bounds: Bounds): Statement => {
    // In the order of the table all rows would be sorted before the condition leaves a few of them.
    const query = selected(condition.inTableOrder ? rows.view : rows.inOrder, bounds, [horizon, condition]);
    if (rows.onePerRecord) query.distinctOn('id');
    const statement = finish(statementName(rows.name, `find-${bounds}`), query, ['limit']);
    return { ...statement, ...(condition.inTableOrder && { inTableOrder: true }) };
  };
  const estimate = (): Statement => {
    const statement = finish(statementName(rows.name, 'estimate'), selected(rows.inOrder, 'all', [horizon]));
    return { ...statement, text: `explain (format json) ${statement.text}` };
  };
  return onFirstUse<Section>({
    order: () => rows.order,
    estimate,
    ahead: () => onFirstUse({ all: () => ahead('all'), after: () => ahead('after') }),
    find: () => byBounds(find),
    idAt: () => keys.indexOf('id'),
  });
}

/**
 * The hash of the id, the id and the version of each row in bounds. The parts of the range are read once and joined: the column of the view
 * would look them up for each row.
 */
function versioned(builder: Knex, resource: Synced, rows: Rows, bounds: Bounds): Knex.QueryBuilder {
  const { sync, versionSeed = 0n, view, idType } = resource;
  const within = bounded(builder, { view, order: rows.order }, bounds);
  const query = builder.from(within.select('id', sync.xid, sourceColumn).as('found'));
  const versions = Object.values(sync.parts).map((part, i) => {
    const isById = rows.order[0]?.column === 'id';
    const parts = isById ? bounded(builder, { view: part.view, order: rows.order }, bounds) : builder(part.view);
    const grouped = parts.select('id', builder.raw(`${partsVersion(sync.xid)} as version`)).groupBy('id');
    query.leftJoin(grouped.as(`part${i}`), `part${i}.id`, 'found.id');
    return `coalesce(part${i}.version, ${noPartsVersion})`;
  });
  const version = hexVersion(versionOf(`found."${sync.xid}"`, [...versions, `found.${sourceColumn}`]), versionSeed);
  const id = textOf('found.id', idType);
  return query.select(builder.raw(`${hashOf(id)} as hash, ${id} as id, ${version} as version`));
}

/** Count and hash of ids and versions by prefix of the hash of the id. */
function digestOf(builder: Knex, resource: Synced, rows: Rows, bounds: Bounds): Statement {
  const query = builder
    .from(versioned(builder, resource, rows, bounds).as('versions'))
    .select(
      builder.raw('left(hash, ?::int) as prefix', ['depth']),
      builder.raw(`count(*)`),
      builder.raw(`bit_xor(('x' || left(${hashOf(`concat(id, chr(10), version)`)}, 16))::bit(64))::text`),
    )
    .groupByRaw('1');
  return { ...finish(statementName(rows.name, `digest-${bounds}`), query), inTableOrder: true };
}

/** Ids and versions of the rows whose hash begins with a prefix. */
function versionsOf(builder: Knex, resource: Synced, rows: Rows, bounds: Bounds): Statement {
  const query = builder
    .from(versioned(builder, resource, rows, bounds).as('versions'))
    .where(builder.raw('hash ^@ any(?::text[])', ['prefixes']))
    .select('id', 'version');
  return { ...finish(statementName(rows.name, `versions-${bounds}`), query, ['limit']), inTableOrder: true };
}

/** A version as it is shown: 16 hexadecimal digits. */
const hexVersion = (version: string, seed: bigint): string =>
  `lpad(to_hex(${version} # (${BigInt.asIntN(64, seed)})::bigint), 16, '0')`;

const keysOf = (order: readonly OrderColumn[]): string[] => order.map(({ column }) => column);

function bounded(builder: Knex, rows: Pick<Rows, 'view' | 'order'>, bounds: Bounds): Knex.QueryBuilder {
  const { after, until } = ends[bounds];
  const query = builder(rows.view);
  if (after) query.where(beyond(builder, rows, '>', 'after'));
  if (until) query.where(beyond(builder, rows, '<=', 'until'));
  return query;
}
