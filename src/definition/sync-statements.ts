import type { Statement } from '../postgres/statement.js';
import type { IdType } from './field-types.js';
import type { OrderColumn, Resource, ResourceSync } from './resource.js';
import { orderBy, param, quoted, quotedList, type Sql, statement, where } from './sql.js';
import { type Bounds, beyond, byBounds, ends, limit, limitBehindSkipped, statementName } from './statements.js';
import { noPartsVersion, partInOrder, partsVersion, sourceColumn, versionOf, viewInOrder } from './walls.js';

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

/** A token that is older counts as older than every row: its id could look younger than it is. */
const tokenIdsMax = 4_000_000_000;

/**
 * age() is the difference between the lower 32 bits of an id and of the next id, which stays the same in a transaction. Without its sign it
 * is at most the real age of a row: a row can look younger than it is, and is repeated, but never older. A row that is newer than the next
 * id looks old: it is in the next pass. (Conversion of xmin by way of text costs ten times as much.) The subquery runs once per statement.
 */
const changedSince = (column: string): Sql => {
  const since = param('since');
  return `(age(${quoted(column)})::bigint & 4294967295) <= (select
    case when pg_snapshot_xmax(pg_current_snapshot())::text::bigint - ${since}::bigint < ${tokenIdsMax}
      then age((${since}::bigint & 4294967295)::text::xid)::bigint & 4294967295 else 4294967295 end)`;
};

/** The first 8 bytes of the SHA-256 of a text, 16 hexadecimal digits: to print all of it takes as long as to compute it. */
const shortHashOf = (text: string): string => `encode(substr(sha256(convert_to(${text}, 'UTF8')), 1, 8), 'hex')`;
/** SHA-256 of a text, 64 hexadecimal digits. */
const hashOf = (text: string): string => `encode(sha256(convert_to(${text}, 'UTF8')), 'hex')`;
const hasPrefix = (hash: string): Sql => `${hash} ^@ any(${param('prefixes')}::text[])`;
/** The id as it is shown. A cast would drop the blanks at the end of a character(n). */
const textOf = (id: string, idType: IdType): string => (idType === 'text' ? `concat(${id})` : `${id}::text`);

/** A resource with sync. */
type Synced = Resource & { readonly sync: ResourceSync };

/** Builds the statements; null for a resource without sync. */
export function compileSyncStatements({ sync, ...given }: Resource): SyncStatements | null {
  if (sync === undefined) return null;
  const resource = { ...given, sync };
  const { name, view, order } = resource;
  const idColumn: OrderColumn = { column: 'id', type: resource.idType };
  const horizon = sync.appendOnly && `${quoted(order[0]?.column as string)} >= ${param('horizon')}::timestamptz`;
  const own = { name: `${name}.sync`, view, order, inOrder: viewInOrder(resource, keysOf(order), 'asc') };
  // Rows that never change keep the order of the list, whose index they have; others can move in it, and are read by id.
  const hashedOrder = sync.appendOnly ? order : [idColumn];
  const inOrder = viewInOrder(resource, keysOf(hashedOrder), 'asc');
  const hashed = { name: `${name}.hashed`, view, order: hashedOrder, inOrder };
  const parts = Object.entries(sync.parts).map(([part, { view, idType }]) => ({
    name: `${name}.${part}`,
    view,
    order: [idColumn, { column: 'part_id', type: idType }],
    inOrder: partInOrder(view).view,
    onePerRecord: true,
  }));
  // In the order of the table all rows would be sorted before the condition leaves a few of them.
  const changed = { condition: changedSince(sync.xid), inTableOrder: true } as const;
  return {
    changed: [
      compileSection(own, { ...changed, horizon }),
      ...parts.map((part) => compileSection(part, { ...changed, horizon: null })),
    ],
    hashed: compileSection(hashed, { condition: hasPrefix(hashOf(textOf('id', resource.idType))), horizon: null }),
    digest: byBounds((bounds) => digestOf(resource, hashed, bounds)),
    versions: byBounds((bounds) => versionsOf(resource, hashed, bounds)),
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

/** The rows that a section finds; with `inTableOrder` the condition is on a column that no index has. */
interface Found extends Pick<Statement, 'inTableOrder'> {
  readonly condition: Sql;
  readonly horizon: Sql | null;
}

function compileSection(rows: Rows, { condition, horizon, inTableOrder }: Found): Section {
  const keys = keysOf(rows.order);
  const inHorizon = horizon === null ? [] : [horizon];
  const inOrder = (bounds: Bounds): Sql =>
    `select ${quotedList(keys)} from ${quoted(rows.inOrder)}${where([...bounded(rows.order, bounds), ...inHorizon])}`;
  const ahead = (bounds: 'all' | 'after'): Statement =>
    statement(statementName(rows.name, `ahead-${bounds}`), `${inOrder(bounds)}${limitBehindSkipped}`);
  const find = (bounds: Bounds): Statement => {
    const distinct = rows.onePerRecord ? 'distinct on (id) ' : '';
    const conditions = where([...bounded(rows.order, bounds), ...inHorizon, condition]);
    const [view, order] = inTableOrder ? [rows.view, orderBy(keys)] : [rows.inOrder, ''];
    const found = `select ${distinct}${quotedList(keys)} from ${quoted(view)}${conditions}${order}${limit}`;
    return { ...statement(statementName(rows.name, `find-${bounds}`), found), ...(inTableOrder && { inTableOrder }) };
  };
  return {
    order: rows.order,
    estimate: statement(statementName(rows.name, 'estimate'), `explain (format json) ${inOrder('all')}`),
    ahead: { all: ahead('all'), after: ahead('after') },
    find: byBounds(find),
    idAt: keys.indexOf('id'),
  };
}

/**
 * The id and the version of each row in bounds. The parts of the range are read once and joined: the column of the view
 * would look them up for each row.
 */
function versioned(resource: Synced, { order }: Rows, bounds: Bounds): Sql {
  const { sync, versionSeed = 0n, view, idType } = resource;
  const within = where(bounded(order, bounds));
  const isById = order[0]?.column === 'id';
  const parts = Object.values(sync.parts);
  const joins = parts.map(
    (part, i) => ` left join (select id, ${partsVersion(sync.xid)} as version from ${quoted(part.view)}
      ${isById ? within : ''} group by id) as part${i} on part${i}.id = found.id`,
  );
  const versions = parts.map((_, i) => `coalesce(part${i}.version, ${noPartsVersion})`);
  const version = versionOf(`found.${quoted(sync.xid)}`, [...versions, `found.${sourceColumn}`]);
  return `select ${textOf('found.id', idType)} as id, ${hexVersion(version, versionSeed)} as version
    from (select ${quotedList(['id', sync.xid, sourceColumn])} from ${quoted(view)}${within}) as found${joins.join('')}`;
}

/** Count and hash of ids and versions by prefix of the hash of the id. */
function digestOf(resource: Synced, rows: Rows, bounds: Bounds): Statement {
  const hash = `bit_xor(('x' || ${shortHashOf('id || chr(10) || version')})::bit(64))::text`;
  const depth = `${param('depth')}::int`;
  // Of depth 0 no id is hashed.
  const digest = `select case ${depth} when 0 then '' else left(${shortHashOf('id')}, ${depth}) end as prefix, count(*), ${hash}
    from (${versioned(resource, rows, bounds)}) as versions group by 1`;
  return { ...statement(statementName(rows.name, `digest-${bounds}`), digest), inTableOrder: true };
}

/** Ids and versions of the rows whose hash begins with a prefix. */
function versionsOf(resource: Synced, rows: Rows, bounds: Bounds): Statement {
  const versions = `select id, version from (${versioned(resource, rows, bounds)}) as versions
    ${where([hasPrefix(hashOf('id'))])}${limit}`;
  return { ...statement(statementName(rows.name, `versions-${bounds}`), versions), inTableOrder: true };
}

/** A version as it is shown: 16 hexadecimal digits. */
const hexVersion = (version: string, seed: bigint): string =>
  `lpad(to_hex(${version} # (${BigInt.asIntN(64, seed)})::bigint), 16, '0')`;

const keysOf = (order: readonly OrderColumn[]): string[] => order.map(({ column }) => column);

function bounded(order: readonly OrderColumn[], bounds: Bounds): Sql[] {
  const { after, until } = ends[bounds];
  return [...(after ? [beyond({ order }, '>', 'after')] : []), ...(until ? [beyond({ order }, '<=', 'until')] : [])];
}
