import { prepareSql, type Statement } from '../../postgres/statement.js';
import type { IdType } from '../definition/field-types.js';
import { listFilterRanges } from '../definition/filter-kinds.js';
import { type OrderColumn, type Resource, type ResourceSync, rowXid, versionColumn } from '../definition/resource.js';
import { type Bounds, composeKeyBounds, listKeyColumns } from './conditions.js';
import { compile, type Fragment, Parameter, type Query, queryEnds, readRows, sql } from './knex.js';
import { compileStatements, mapBounds } from './statements.js';
import { composePartVersion, composeRecordVersion, nameOrderedPart, nameOrderedView, sourceColumn } from './walls.js';

// Example: a pass over the changes of klanten goes from range to range, so that each statement ends within a second:
//   ahead: select "created_at", "id" from gateway.klanten_asc where <after the last range> limit 1 offset 499999    where the range ends
//   find:  select "created_at", "id" from gateway.klanten where <in the range> and <row_xid is later than the token> limit …
// A page reads the ids that were found as a list of ids. A digest adds up, range by range, hashes of ids and versions.

/** Rows that a pass examines in one order: the rows of the view, or of a view of parts. */
export interface Section {
  readonly order: readonly OrderColumn[];
  /** Finds the key `skip` rows ahead. Parameters: after0/after1, horizon, limit, skip. */
  readonly ahead: Readonly<Record<'all' | 'after', Statement>>;
  /** Finds keys of a range's rows that meet the condition, one per record in a view of parts. Parameters: `ahead`'s, until0/1, its own. */
  readonly find: Readonly<Record<Bounds, Statement>>;
  readonly idAt: number;
}

export interface SyncStatements {
  /** Rows changed by their own xid or by the xids of their parts. Parameter of the condition: since. */
  readonly changed: readonly Section[];
  /** Rows whose SHA-256 begins with a prefix. Parameter of the condition: prefixes. */
  readonly hashed: Section;
  /** Reads count and hash per prefix of a range of `hashed`. Parameter: depth. */
  readonly digest: Readonly<Record<Bounds, Statement>>;
  /** Reads ids and versions of a range of `hashed`. Parameters: prefixes, limit. */
  readonly versions: Readonly<Record<Bounds, Statement>>;
  /** Null if the list has no filters of a first and a last day. */
  readonly period: PeriodStatements | null;
}

export interface PeriodStatements {
  /** Filters of the list that take its first and its last day. */
  readonly first: string;
  readonly last: string;
  readonly ahead: Section['ahead'];
  /** Reads the digest of a range of the list, without prefixes. Parameters: as for the list's rows. */
  readonly digest: Readonly<Record<Bounds, Statement>>;
}

/** A token with an older id counts as older than every row: 2^32 ids, which are more, make an id look young again. */
const tokenIdsMax = 4_000_000_000;

/**
 * Compares by age(), which has 32 bits, and is taken without its sign: a row can look younger than it is, and is repeated, but never older.
 * A row that is newer than the next id looks old: it is in the next pass. The subquery runs once per statement.
 */
const whereChangedSince = (): Fragment =>
  sql.raw(
    `(age(:column:)::bigint & 4294967295) <= (select
      case when pg_snapshot_xmax(pg_current_snapshot())::text::bigint - :since::bigint < ${tokenIdsMax}
        then age((:since::bigint & 4294967295)::text::xid)::bigint & 4294967295 else 4294967295 end)`,
    { column: rowXid, since: new Parameter('since') },
  );

/** Hashes a text to the first 8 bytes of its SHA-256, 16 hexadecimal digits: printing all of it takes as long as computing it. */
const composeShortHash = (text: string): string => `encode(substr(sha256(convert_to(${text}, 'UTF8')), 1, 8), 'hex')`;
/** Hashes a text to 64 hexadecimal digits. */
const composeHash = (text: string): string => `encode(sha256(convert_to(${text}, 'UTF8')), 'hex')`;
const whereHashBegins = (hash: string): Fragment => sql.raw(`${hash} ^@ any(?::text[])`, [new Parameter('prefixes')]);
/** Prints the id as it is shown. A cast would drop the spaces at the end of a character(n). */
const composeIdText = (id: string, idType: IdType): string => (idType === 'text' ? `concat(${id})` : `${id}::text`);

/** A view read in an order; `name` begins the labels of the statements. */
interface OrderedView {
  readonly name: string;
  readonly view: string;
  readonly order: readonly OrderColumn[];
  readonly inOrder: string;
  /** In a view of parts, the first part of a record that meets the condition is enough. */
  readonly onePerRecord?: true;
  /** Rows of an earlier moment are not read. */
  readonly horizon?: Fragment | undefined;
}

export function compileSyncStatements(resource: Resource): SyncStatements | null {
  const { sync, name, view, order, idType } = resource;
  if (sync === undefined) return null;
  const idColumn: OrderColumn = { column: 'id', type: idType };
  const [{ column: first }] = order as [OrderColumn];
  const horizon = sync.appendOnly && sql.raw('?? >= ?::timestamptz', [first, new Parameter('horizon')]);
  const describeRows = (rowsOrder: readonly OrderColumn[], suffix: string): OrderedView => {
    const inOrder = nameOrderedView(resource, listKeyColumns(rowsOrder), 'asc');
    return { name: `${name}.${suffix}`, view, order: rowsOrder, inOrder };
  };
  // Rows that never change keep the order of the list, whose index they have; others can move in it, and rows with parts share the id with
  // them.
  const hashed = describeRows(sync.appendOnly && Object.keys(sync.parts).length === 0 ? order : [idColumn], 'hashed');
  const parts = Object.entries(sync.parts).map(([part, { view, idType }]): OrderedView => {
    const order: OrderedView['order'] = [idColumn, { column: 'part_id', type: idType }];
    return { name: `${name}.${part}`, view, order, inOrder: nameOrderedPart(view), onePerRecord: true };
  });
  return {
    // In the order of the table: otherwise all rows would be sorted before the condition leaves a few of them.
    changed: [{ ...describeRows(order, 'sync'), horizon }, ...parts].map((rows) =>
      compileSection(rows, whereChangedSince(), true),
    ),
    hashed: compileSection(hashed, whereHashBegins(composeHash(composeIdText('id', idType)))),
    digest: mapBounds((bounds) => makeDigestStatement(resource, sync, hashed, bounds)),
    versions: mapBounds((bounds) => makeVersionsStatement(resource, sync, hashed, bounds)),
    period: makePeriodStatements(resource),
  };
}

/** Selects the rows of the list with their versions, which look the parts of each record up: parts have no days of their own. */
function makePeriodStatements(resource: Resource): PeriodStatements | null {
  const [days] = listFilterRanges(resource.filters);
  if (days === undefined) return null;
  const columns = [...new Set(['id', ...listKeyColumns(resource.order), versionColumn])];
  const names = [days.lower, days.upper];
  const { rows, keys } = compileStatements(resource).list(names, 'asc', { fields: ['id'], columns });
  const version = composeHexColumn(versionColumn, resource.versionSeed ?? 0n);
  const id = composeIdText('id', resource.idType);
  const digestOf = ({ label, text, parameters }: Statement): Statement =>
    prepareSql(
      `${label}.digest`,
      `select '', count(*), ${composeHashOfAll(id, version)} from (${text}) as found`,
      parameters,
    );
  return { first: days.lower, last: days.upper, ahead: keys, digest: mapBounds((bounds) => digestOf(rows[bounds])) };
}

/** Selects the rows that meet the condition; `inTableOrder` if it is on a column without an index. */
function compileSection(rows: OrderedView, condition: Fragment, inTableOrder?: true): Section {
  const { name, view, order, inOrder, horizon, onePerRecord } = rows;
  const keys = listKeyColumns(order);
  const within = (bounds: Bounds): Fragment[] => [...composeKeyBounds(order, bounds), ...(horizon ? [horizon] : [])];
  const ahead = (bounds: 'all' | 'after'): Statement =>
    compile(`${name}.ahead-${bounds}`, queryEnds.limitAfterSkipped(readRows(inOrder, within(bounds)).select(keys)));
  const find = (bounds: Bounds): Statement => {
    const found = readRows(inTableOrder ? view : inOrder, [...within(bounds), condition]).select(keys);
    if (onePerRecord) found.distinctOn('id');
    if (inTableOrder) found.orderBy(keys);
    return compile(`${name}.find-${bounds}`, queryEnds.limit(found), inTableOrder);
  };
  return {
    order,
    ahead: { all: ahead('all'), after: ahead('after') },
    find: mapBounds(find),
    idAt: keys.indexOf('id'),
  };
}

/**
 * Selects id and version of each row in bounds: rows and parts of the range are read once and grouped. A join of them would be a nested
 * loop where a plan expects few rows, as it does between two bounds.
 */
function selectVersions(resource: Resource, sync: ResourceSync, rows: OrderedView, bounds: Bounds): Query {
  const { versionSeed = 0n, view, idType } = resource;
  const { order } = rows;
  const within = composeKeyBounds(order, bounds);
  const own = `true as is_record, ${composeRecordVersion(sourceColumn)} as version`;
  const records = readRows(view, within).select('id', sql.raw(own));
  const parts = Object.values(sync.parts).map((part, kind) =>
    readRows(part.view, within).select('id', sql.raw(`false, ${composePartVersion(kind)}`)),
  );
  const version = composeHexColumn('bit_xor(version)', versionSeed);
  return readRows(sql.raw('? as found', [parts.length === 0 ? records : records.unionAll(parts)]))
    .select(sql.raw(`${composeIdText('id', idType)} as id, ${version} as version`))
    .groupBy('found.id')
    .havingRaw('bool_or(is_record)');
}

/** Combines the first 8 bytes of SHA-256(id, newline, version) over rows by XOR, as 64 digits 0 and 1. */
const composeHashOfAll = (id: string, version: string): string =>
  `bit_xor(('x' || ${composeShortHash(`${id} || chr(10) || ${version}`)})::bit(64))::text`;

/** Counts and hashes ids and versions by prefix of the hash of the id. With depth 0 no id is hashed. */
function makeDigestStatement(resource: Resource, sync: ResourceSync, rows: OrderedView, bounds: Bounds): Statement {
  const prefix = `case :depth::int when 0 then '' else left(${composeShortHash('id')}, :depth::int) end as prefix`;
  const digest = readRows(sql.raw('? as versions', [selectVersions(resource, sync, rows, bounds)]))
    .select(sql.raw(`${prefix}, count(*), ${composeHashOfAll('id', 'version')}`, { depth: new Parameter('depth') }))
    .groupByRaw('1');
  return compile(`${rows.name}.digest-${bounds}`, digest, true);
}

/** Reads ids and versions of the rows whose hash begins with a prefix. */
function makeVersionsStatement(resource: Resource, sync: ResourceSync, rows: OrderedView, bounds: Bounds): Statement {
  const versions = sql.raw('? as versions', [selectVersions(resource, sync, rows, bounds)]);
  const found = readRows(versions, [whereHashBegins(composeHash('id'))]).select('id', 'version');
  return compile(`${rows.name}.versions-${bounds}`, queryEnds.limit(found), true);
}

/** Prints a version as 16 hexadecimal digits. */
const composeHexColumn = (version: string, seed: bigint): string =>
  `lpad(to_hex(${version} # (${BigInt.asIntN(64, seed)})::bigint), 16, '0')`;
