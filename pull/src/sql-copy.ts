import type { Commit, Copy, Groups, Progress } from './destination.js';
import { Unusable } from './destination.js';
import {
  type Column,
  type ColumnType,
  hashColumn,
  type PartTable,
  type Resource,
  type Table,
  versionColumn,
} from './document.js';

/** A value of a parameter. */
export type Value = string | number | null;

/** A connection to a database. Parameters are $1, $2, … */
export interface Session {
  rows<T extends object>(sql: string, values?: readonly Value[]): Promise<T[]>;
  /** Makes the temporary table `page` (id, n, r) of records, in their order n. */
  makePage(resource: Resource, records: readonly string[]): Promise<void>;
}

/** How a database spells what the statements of a copy need. */
export interface Dialect {
  readonly schema: string;
  /** The schema of temporary tables. */
  readonly temporary: string;
  readonly types: Readonly<Record<ColumnType, string>>;
  /** The value of a column in a record or an element. */
  readonly valueIn: (json: 'r' | 'e', column: Column) => string;
  /** A FROM clause of the elements of a part: id, e, position. */
  readonly elements: (part: PartTable) => string;
  /** MD5 of a text, 32 hexadecimal digits. */
  readonly md5: (text: string) => string;
  /** SHA-256 of a text, 64 hexadecimal digits. */
  readonly sha256: (text: string) => string;
  /** The XOR of the first 16 digits of a hash over a group, 16 hexadecimal digits. */
  readonly xorOf: (hash: string) => string;
  /** Conditions on a column of ids, by which a verification of so many records goes through them in shares that fit into memory. */
  readonly shares: (records: number) => readonly ((column: string) => string)[];
  /** A text that differs whenever a value differs. */
  readonly rowText: (columns: readonly string[]) => string;
  /** A query of the texts in the JSON array $1. */
  readonly texts: string;
  /** Indexes on these columns help; without: the database finds them by the order of its blocks. */
  readonly hasIndexes: boolean;
}

export const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`;

/** The statements of a copy, for one resource in one database. */
export async function sqlCopy(session: Session, dialect: Dialect, resource: Resource): Promise<Copy> {
  const { run, inTransaction } = runner(session);
  const at = (name: string): string => `${quoted(dialect.schema)}.${quoted(name)}`;
  const table = at(resource.name);
  const progress = await prepare(session, dialect, resource);
  const columns = resource.columns.map(({ name }) => quoted(name));
  const version = quoted(versionColumn);
  const idHash = dialect.sha256('id');

  const note = ({ since, cursor, changeFiles }: Commit): Promise<unknown> =>
    run(
      `update ${at('pull_state')} set since = $2, cursor = $3, change_files = $4, stored_at = current_timestamp where resource = $1`,
      [resource.name, since, cursor, changeFiles],
    );
  const remove = async (ids: string, values: readonly Value[] = [], place = at): Promise<void> => {
    for (const { name, owner } of resource.parts)
      await run(`delete from ${place(name)} where ${quoted(owner)} in (${ids})`, values);
    await run(`delete from ${place(resource.name)} where id in (${ids})`, values);
  };
  /** Some columns of the records of a source, with the hash of all that is stored of each: the rows themselves need not be joined. */
  const hashed = (source: string, shown: readonly string[], ofParts: string, place = at): string => {
    const joins = resource.parts.map(({ name, owner, columns: own }, i) => {
      const text = dialect.rowText(['position', ...own.map(({ name: column }) => quoted(column))]);
      return `left join (select ${quoted(owner)} as id, cast(count(*) as varchar) || ' ' || ${dialect.xorOf(dialect.md5(text))} as h
        from ${place(name)} ${ofParts.replaceAll('OWNER', quoted(owner))} group by 1) p${i} on p${i}.id = m.id`;
    });
    const hashes = ['m.own_hash', ...resource.parts.map((_, i) => `coalesce(p${i}.h, '')`)];
    const own = `select ${shown.join(', ')}, ${dialect.md5(dialect.rowText([...columns, version]))} as own_hash from ${source} s`;
    return `select ${shown.map((column) => `m.${column}`).join(', ')}, ${dialect.md5(hashes.join(` || '|' || `))} as computed
      from (${own}) m ${joins.join(' ')}`;
  };

  /** Temporary tables with the rows of a page: its records are gone through some at a time, the tables of the copy once a page. */
  const staged = (name: string): string => `${dialect.temporary}.${quoted(`new_${name}`)}`;
  const names = [...resource.parts, resource].map(({ name }) => name);
  const stage = async (records: readonly string[]): Promise<void> => {
    await session.makePage(resource, records);
    await run('delete from page where exists (select 1 from page later where later.id = page.id and later.n > page.n)');
    await remove('select id from page', [], staged);
    for (const part of resource.parts) {
      const own = [part.owner, 'position', ...part.columns.map(({ name }) => name)].map(quoted);
      const values = part.columns.map((column) => dialect.valueIn('e', column));
      await run(
        `insert into ${staged(part.name)} (${own.join(', ')})
         select ${['id', 'position', ...values].join(', ')} from ${dialect.elements(part)}`,
      );
    }
    const values = resource.columns.map((column) => `${dialect.valueIn('r', column)} as ${quoted(column.name)}`);
    const syncVersion: Column = { name: versionColumn, path: ['syncVersion'], type: 'text', comment: '' };
    const source = `(select ${values.join(', ')}, ${dialect.valueIn('r', syncVersion)} as ${version} from page)`;
    await run(
      `insert into ${staged(resource.name)} (${[...columns, version, quoted(hashColumn)].join(', ')})
       ${hashed(source, [...columns, version], 'where OWNER in (select id from page)', staged)}`,
    );
  };

  return {
    progress,
    store: (slices, commit) =>
      inTransaction(async () => {
        let count = 0;
        for (const name of names) {
          await run(`drop table if exists ${staged(name)}`);
          await run(`create temporary table ${staged(name)} as select * from ${at(name)} limit 0`);
        }
        for await (const slice of slices) {
          await stage(slice.map(storable));
          count += slice.length;
        }
        await remove(`select id from ${staged(resource.name)}`);
        for (const name of names) await run(`insert into ${at(name)} select * from ${staged(name)}`);
        await note(await commit());
        return count;
      }),
    delete: (ids, commit) =>
      inTransaction(async () => {
        await remove(dialect.texts, [JSON.stringify(ids)]);
        await note(await commit());
      }),
    digest: async (depth): Promise<Groups> => {
      const versioned = dialect.sha256(`id || chr(10) || coalesce(${version}, '')`);
      const found = await session.rows<{ prefix: string; digest: string }>(
        `select prefix, cast(count(*) as varchar) || ' ' || ${dialect.xorOf('h')} as digest
         from (select left(${idHash}, ${depth}) as prefix, ${versioned} as h from ${table}) hashes group by 1`,
      );
      return new Map(found.map(({ prefix, digest }) => [prefix, digest]));
    },
    versions: async (prefixes) => {
      const depth = prefixes[0]?.length ?? 0;
      const found = await session.rows<{ id: string; version: string | null }>(
        `select id, ${version} as version from ${table} where left(${idHash}, ${depth}) in (${dialect.texts})`,
        [JSON.stringify(prefixes)],
      );
      return new Map(found.map(({ id, version: own }) => [id, own ?? '']));
    },
    // Without a transaction: DuckDB keeps the changes of one in memory, and each is right by itself.
    recheck: async () => {
      await run(`delete from ${table} where id is null`);
      for (const { name, owner } of resource.parts) await run(`delete from ${at(name)} where ${quoted(owner)} is null`);
      const [row] = await session.rows<{ count: number | string }>(`select count(*) as count from ${table}`);
      for (const isIn of dialect.shares(Number(row?.count))) {
        const records = `(select * from ${table} where ${isIn('id')})`;
        for (const { name, owner } of resource.parts) {
          const column = quoted(owner);
          await run(`delete from ${at(name)} where ${isIn(column)} and ${column} not in (select id from ${records} r)`);
        }
        const differing = `select id from (${hashed(records, ['id', quoted(hashColumn)], `where ${isIn('OWNER')}`)}) c where c.computed is distinct from c.${quoted(hashColumn)}`;
        const repeated = `select id from ${records} r group by id having count(*) > 1`;
        await run(`update ${table} set ${version} = '' where id in (${differing} union ${repeated})`);
      }
    },
    finish: async () => {
      if (!dialect.hasIndexes) return;
      const ofReferences = resource.references.map(({ column }) => column);
      for (const { name, columns: own } of [resource, ...resource.parts])
        for (const { name: column, type } of own)
          if (type === 'date' || type === 'timestamp' || (name === resource.name && ofReferences.includes(column)))
            await run(`create index if not exists ${quoted(`${name}_${column}`)} on ${at(name)} (${quoted(column)})`);
    },
  };
}

type Runner = (sql: string, values?: readonly Value[]) => Promise<object[]>;

function runner(session: Session): { run: Runner; inTransaction: <T>(work: () => Promise<T>) => Promise<T> } {
  const run: Runner = (sql, values) => session.rows(sql, values);
  const inTransaction = async <T>(work: () => Promise<T>): Promise<T> => {
    await run('begin');
    try {
      const result = await work();
      await run('commit');
      return result;
    } catch (error) {
      await run('rollback').catch(() => undefined); // a lost connection has rolled back
      throw error;
    }
  };
  return { run, inTransaction };
}

/** Makes the table of the state. Throws Unusable where its name is taken. */
export async function prepareState(session: Session, { schema }: Dialect): Promise<number> {
  const state = `${quoted(schema)}.pull_state`;
  const columns = await columnsIn(session, schema, 'pull_state');
  if (columns.size > 0 && !columns.has('shape'))
    throw new Unusable(
      `${schema}.pull_state was not made by this version of pull: drop the copy, or give another destination.`,
    );
  await session.rows(`create table if not exists ${state} (resource text primary key, since text, cursor text,
    change_files bigint not null default 0, shape text, stored_at timestamp with time zone)`);
  const [row] = await session.rows<{ files: number | string | null }>(
    `select max(change_files) as files from ${state}`,
  );
  return Number(row?.files ?? 0);
}

/** Makes the tables of a resource, or those columns that they lack, and returns its progress: none after a change of columns. */
async function prepare(session: Session, dialect: Dialect, resource: Resource): Promise<Progress> {
  const { schema, types } = dialect;
  const state = `${quoted(schema)}.pull_state`;
  const tables = tablesOf(resource);
  const shape = JSON.stringify(
    tables.map(({ name, columns }) => [name, columns.map((each) => [each.name, each.type])]),
  );
  const [known] = await session.rows<Progress & { shape: string | null }>(
    `select since, cursor, shape from ${state} where resource = $1`,
    [resource.name],
  );
  let isChanged = known?.shape !== shape;
  const { run, inTransaction } = runner(session);
  const existing = new Set<string>();
  for (const { name, columns } of tables) {
    const present = await columnsIn(session, schema, name);
    if (present.size > 0) existing.add(name);
    if (present.size > 0 && known === undefined)
      throw new Unusable(`${schema}.${name} exists and was not made by pull: drop it, or give another destination.`);
    for (const { name: column, type } of columns) {
      const found = present.get(column);
      if (found !== undefined && found.toLowerCase() !== types[type].toLowerCase())
        throw new Unusable(
          `${schema}.${name}.${column} is ${found}, and the API has ${types[type]}: drop the table, and the next run fills it again.`,
        );
      if (found === undefined) isChanged = true;
    }
  }
  // Before its tables: they are known as those of pull, wherever a kill falls.
  if (known === undefined) await run(`insert into ${state} (resource) values ($1)`, [resource.name]);
  for (const { name, columns, key } of tables) {
    const place = `${quoted(schema)}.${quoted(name)}`;
    await inTransaction(async () => {
      const primary = dialect.hasIndexes ? `, primary key (${key.map(quoted).join(', ')})` : '';
      const first = columns.map((each) => `${quoted(each.name)} ${types[each.type]}`);
      await run(`create table if not exists ${place} (${first.join(', ')}${primary})`);
      if (existing.has(name))
        for (const each of columns)
          await run(`alter table ${place} add column if not exists ${quoted(each.name)} ${types[each.type]}`);
    });
  }
  if (!isChanged && known !== undefined) return { since: known.since, cursor: known.cursor };
  await inTransaction(async () => {
    for (const { name, comment, columns } of tables) {
      const place = `${quoted(schema)}.${quoted(name)}`;
      await run(`comment on table ${place} is ${literal(comment)}`);
      for (const each of columns)
        await run(`comment on column ${place}.${quoted(each.name)} is ${literal(each.comment)}`);
    }
    await run(`update ${state} set since = null, cursor = null, shape = $2 where resource = $1`, [
      resource.name,
      shape,
    ]);
  });
  return { since: null, cursor: null };
}

/** A table with all of its columns. */
export interface WholeTable extends Table {
  readonly key: readonly string[];
  /** Columns of an export: all but those that `pull` keeps for itself. */
  readonly shown: readonly string[];
}

/** The tables of a resource, with the columns that `pull` adds. */
export function tablesOf(resource: Resource): WholeTable[] {
  const added = (name: string, type: ColumnType, comment: string): Column => ({ name, path: [], type, comment });
  const kept = [
    added(versionColumn, 'text', 'Version of the record, as the gateway gave it.'),
    added(hashColumn, 'text', 'Hash of the record and its parts as they were stored.'),
  ];
  const main = {
    ...resource,
    columns: [...resource.columns, ...kept],
    key: ['id'],
    shown: resource.columns.map(({ name }) => name),
  };
  const parts = resource.parts.map((part) => {
    const owner = added(part.owner, 'text', `Id of the record in ${resource.name}.`);
    const position = added('position', 'integer', 'Place in the record, from 1.');
    const columns = [owner, position, ...part.columns];
    return { ...part, columns, key: [part.owner, 'position'], shown: columns.map(({ name }) => name) };
  });
  return [main, ...parts];
}

/** Columns of a table with their types; none if it does not exist. */
async function columnsIn(session: Session, schema: string, table: string): Promise<Map<string, string>> {
  const found = await session.rows<{ name: string; type: string }>(
    `select column_name as name, data_type as type from information_schema.columns where table_schema = $1 and table_name = $2`,
    [schema, table],
  );
  return new Map(found.map(({ name, type }) => [name, type]));
}

/** A text as a literal. */
export const literal = (text: string): string => `'${text.replaceAll("'", "''")}'`;

/** Records whose reference leads nowhere, of references between copied resources. */
export async function danglingIn(
  session: Session,
  { schema }: Dialect,
  resources: readonly Resource[],
): Promise<number> {
  let sum = 0;
  const place = (name: string): string => `${quoted(schema)}.${quoted(name)}`;
  for (const { name, references } of resources)
    for (const { column, resource } of references) {
      const target = resources.find((each) => each.name === resource);
      if (target === undefined) continue;
      const [row] = await session.rows<{ count: number | string }>(
        `select count(*) as count from ${place(name)} where ${quoted(column)} is not null
         and not exists (select 1 from ${place(target.name)} t where t.id = ${quoted(column)})`,
      );
      sum += Number(row?.count ?? 0);
    }
  return sum;
}

const unstorable = /\\u(0000|[dD][89a-fA-F])/;
/** A pair of surrogates, or any other escape: a reverse solidus that is escaped itself begins none. */
const escapes = /\\(?:u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|u[\da-fA-F]{4}|.)/g;

/** The text with U+FFFD for U+0000 and for each half of a pair of surrogates, which no text column can hold. */
function storable(text: string): string {
  if (!unstorable.test(text)) return text;
  return text.replace(escapes, (each) => (each.length === 6 && unstorable.test(each) ? '\\ufffd' : each));
}
