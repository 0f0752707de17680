import pg from 'pg';
import { type Column, type Copy, type Destination, DestinationUnusable, type PullState } from './destination.js';
import { storable } from './json-text.js';

const name = pg.escapeIdentifier;
const schema = 'workspace_data';
const hash = `encode(sha256(convert_to(id, 'UTF8')), 'hex')`;
/** Serializes the processes that pull into a database: two would overwrite newer records with older ones. */
const lockKey = 7_205_759_403;

/**
 * A copy in PostgreSQL 14 or later: a table for each resource in the schema workspace_data. Records and progress are stored in one
 * transaction, that of the last page with the deletions as well, so a process that is killed at any moment loses and doubles nothing.
 * Throws DestinationUnusable.
 */
export async function postgresDestination(url: string): Promise<Destination> {
  const db = new pg.Client({ connectionString: url, application_name: 'workspace-data-pull' });
  db.on('error', () => undefined); // the next statement reports a connection that died
  await db.connect().catch((error: Error) => {
    throw new DestinationUnusable(
      `The destination cannot be reached: ${error.message || (error as { code?: string }).code}.`,
    );
  });
  const { rows } = await db.query('select pg_try_advisory_lock($1) as mine', [lockKey]);
  if (!rows[0].mine) {
    await db.end();
    throw new DestinationUnusable('Another process pulls into this destination.');
  }
  await db.query(`create schema if not exists ${schema}; create table if not exists ${schema}.pull_state (
    resource text primary key, since text, cursor text, stored_at timestamptz not null default now())`);
  const transaction = new OpenTransaction(db);
  return {
    open: async (resource, columns) => {
      await transaction.end('rollback'); // a pass before this one failed
      return copyOf(db, transaction, resource, columns, await prepare(db, transaction, resource, columns));
    },
    close: () => db.end(),
  };
}

/** Makes the table of a resource, and returns its progress. */
async function prepare(
  db: pg.Client,
  transaction: OpenTransaction,
  resource: string,
  columns: readonly Column[],
): Promise<PullState> {
  const none = { since: null, cursor: null };
  if (await hasColumns(db, resource, columns)) {
    const text = `select since, cursor from ${schema}.pull_state where resource = $1`;
    return (await db.query<PullState>(text, [resource])).rows[0] ?? none;
  }
  // Records that were copied without a column get it by a pass over everything.
  await transaction.begin();
  await db.query(`create table if not exists ${schema}.${name(resource)} (id text primary key)`);
  for (const column of columns)
    await db.query(
      `alter table ${schema}.${name(resource)} add column if not exists ${name(column.name)} ${column.type}`,
    );
  await db.query(`delete from ${schema}.pull_state where resource = $1`, [resource]);
  await transaction.end('commit');
  return none;
}

function copyOf(
  db: pg.Client,
  transaction: OpenTransaction,
  resource: string,
  columns: readonly Column[],
  state: PullState,
): Copy {
  const upsert = upsertOf(resource, columns);
  return {
    state,
    store: async (body, { since, cursor }) => {
      await transaction.begin();
      const stored = await db.query(upsert, [storable(body)]).catch((error) => refuseUnfitColumn(error, resource));
      await db.query(
        `insert into ${schema}.pull_state (resource, since, cursor) values ($1, $2, $3)
         on conflict (resource) do update set since = $2, cursor = $3, stored_at = now()`,
        [resource, since, cursor],
      );
      // The last page waits for the deletions, so that its token counts together with them.
      if (cursor !== null) await transaction.end('commit');
      return stored.rowCount ?? 0;
    },
    delete: async (ids) => {
      await transaction.begin();
      await db.query(`delete from ${schema}.${name(resource)} where id = any($1)`, [ids]);
    },
    digest: async (depth) => {
      const found = await db.query<{ prefix: string; digest: string }>(
        `select left(h, $1) as prefix, count(*) || ' ' || lpad(to_hex(bit_xor(('x' || left(h, 16))::bit(64)::bigint)), 16, '0') as digest
         from (select ${hash} as h from ${schema}.${name(resource)}) hashes group by 1`,
        [depth],
      );
      return new Map(found.rows.map(({ prefix, digest }) => [prefix, digest]));
    },
    ids: async (prefixes) => {
      const text = `select id from ${schema}.${name(resource)} where ${hash} ^@ any($1::text[])`;
      return (await db.query<{ id: string }>(text, [prefixes])).rows.map(({ id }) => id);
    },
    commit: () => transaction.end('commit'),
  };
}

async function hasColumns(db: pg.Client, resource: string, columns: readonly Column[]): Promise<boolean> {
  const { rows } = await db.query<{ name: string }>(
    `select attname as name from pg_attribute where attrelid = to_regclass($1) and attnum > 0 and not attisdropped`,
    [`${schema}.${name(resource)}`],
  );
  const present = new Set(rows.map((row) => row.name));
  return columns.every((column) => present.has(column.name));
}

/** Takes the records of a page from its JSON; of a record that comes twice, the later one. */
function upsertOf(resource: string, columns: readonly Column[]): string {
  const table = `${schema}.${name(resource)}`;
  const names = columns.map((column) => name(column.name));
  const changes = names.filter((each) => each !== '"id"').map((each) => `${each} = excluded.${each}`);
  return `insert into ${table} (${names.join(', ')})
    select ${names.map((each) => `r.${each}`).join(', ')}
    from (select distinct on (e.value ->> 'id') e.value
          from jsonb_array_elements($1::jsonb -> 'data') with ordinality e (value, n) order by e.value ->> 'id', n desc) d
      cross join lateral jsonb_populate_record(null::${table}, d.value) r
    on conflict (id) do update set ${changes.join(', ')}`;
}

/** A column that an older definition made can have another type: data exceptions have the class 22 (PostgreSQL, Appendix A). */
function refuseUnfitColumn(error: Error & { readonly code?: string }, resource: string): never {
  if (!error.code?.startsWith('22')) throw error;
  const table = `${schema}.${name(resource)}`;
  throw new DestinationUnusable(
    `A column of ${table} cannot hold what the gateway has (${error.message}): give it the type of the API, or drop the table, which the next run makes again and fills.`,
  );
}

/** At most one transaction of a connection. */
class OpenTransaction {
  readonly #db: pg.Client;
  #isOpen = false;

  constructor(db: pg.Client) {
    this.#db = db;
  }

  async begin(): Promise<void> {
    if (!this.#isOpen) await this.#db.query('begin');
    this.#isOpen = true;
  }

  async end(command: 'commit' | 'rollback'): Promise<void> {
    if (this.#isOpen) await this.#db.query(command);
    this.#isOpen = false;
  }
}
