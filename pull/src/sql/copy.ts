import {
  ColumnWidened,
  type Commit,
  type Copy,
  type Freshness,
  type Groups,
  type Progress,
  UnusableDestination,
} from '../destination.js';
import { type Column, hashColumn, type Kind, type Resource, versionColumn } from '../document.js';
import { type FlatRecord, Flattener, type Row } from '../record.js';
import { widenKind } from '../values.js';
import {
  composeRowText,
  type Dialect,
  quoteLiteral,
  quoteName,
  runInTransaction,
  type Session,
  type Value,
} from './dialect.js';
import { Shape } from './shape.js';
import { type ClaimedDestination, CopyState } from './state.js';
import {
  getIdColumn,
  getType,
  isTable,
  makeTables,
  nameIndex,
  planTables,
  requireValues,
  type WholeTable,
} from './tables.js';

/** Makes or changes the tables, and then the copy. Throws Unusable. */
export async function makeSqlCopy(claimed: ClaimedDestination, resource: Resource): Promise<Copy> {
  const { session, dialect } = claimed;
  const state = new CopyState(claimed, resource);
  const tables = planTables(resource, claimed.hasWorkspace);
  const known = await state.read();
  const shape = known?.shape ?? Shape.read(null);
  for (const { name } of tables)
    if (!shape.has(name) && (await isTable(session, dialect.schema, name)))
      throw new UnusableDestination(
        `${dialect.schema}.${name} exists, and is no table of ${resource.name}: drop it, or give another destination.`,
      );
  const isBack = shape.follow(tables);
  const isStale = await runInTransaction(session, async () => {
    if (known === null) await state.insert();
    const isChanged = (await makeTables(session, dialect, tables, shape)) || isBack;
    if (isChanged) await state.reset(shape);
    else if (shape.isGrown) await state.keepShape(shape);
    return isChanged;
  });
  shape.isGrown = false;
  const progress = known === null || isStale ? { since: null, cursor: null } : known.progress;
  return new SqlCopy(claimed, resource, tables, state, shape, progress);
}

class SqlCopy implements Copy {
  readonly #session: Session;
  readonly #dialect: Dialect;
  readonly #workspaceId: string;
  readonly #idColumn: string;
  readonly #main: WholeTable;

  constructor(
    { session, dialect, origin }: ClaimedDestination,
    private readonly resource: Resource,
    private readonly tables: readonly WholeTable[],
    private readonly state: CopyState,
    private readonly shape: Shape,
    readonly progress: Progress,
  ) {
    this.#session = session;
    this.#dialect = dialect;
    this.#workspaceId = origin.workspaceId;
    this.#idColumn = quoteName(getIdColumn(resource));
    this.#main = tables[0] as WholeTable;
  }

  get gone(): readonly string[] {
    return this.shape.gone;
  }

  async store(slices: AsyncIterable<readonly string[]>, commit: () => Promise<Commit>): Promise<number> {
    try {
      const stored = await runInTransaction(this.#session, async () => {
        for (const table of this.tables) await this.#makeStagedTable(table);
        const count = await this.#stageRecords(slices);
        if (this.shape.isGrown) await makeTables(this.#session, this.#dialect, this.tables, this.shape);
        for (const table of this.tables) await this.#refuseLoss(table);
        await this.#merge();
        await this.state.noteProgress(await commit(), this.shape);
        return count;
      });
      this.shape.isGrown = false;
      return stored;
    } catch (error) {
      if (error instanceof ColumnWidened) await this.state.reset(this.shape);
      throw error;
    }
  }

  async delete(ids: readonly string[], commit: () => Promise<Commit>): Promise<void> {
    await runInTransaction(this.#session, async () => {
      await this.#deleteRecords(this.#dialect.texts, [JSON.stringify(ids)]);
      await this.state.noteProgress(await commit(), this.shape);
    });
  }

  async readDigest(depth: number): Promise<Groups> {
    const { sha256, xorOf, at } = this.#dialect;
    const versioned = sha256(`${this.#idColumn} || chr(10) || coalesce(${versionColumn}, '')`);
    const groups = await this.#session.query<{ prefix: string; digest: string }>(
      `select prefix, cast(count(*) as varchar) || ' ' || ${xorOf('h')} as digest
       from (select left(${sha256(this.#idColumn)}, ${depth}) as prefix, ${versioned} as h from ${at(this.#main.name)}) hashes group by 1`,
    );
    return new Map(groups.map(({ prefix, digest }) => [prefix, digest]));
  }

  async readVersions(prefixes: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const { sha256, at, texts } = this.#dialect;
    const depth = prefixes[0]?.length ?? 0;
    const rows = await this.#session.query<{ id: string; version: string | null }>(
      `select ${this.#idColumn} as id, ${versionColumn} as version from ${at(this.#main.name)}
       where left(${sha256(this.#idColumn)}, ${depth}) in (${texts})`,
      [JSON.stringify(prefixes)],
    );
    return new Map(rows.map(({ id, version }) => [id, version ?? '']));
  }

  // Without a transaction: DuckDB keeps the changes of one in memory, and each is right without the others.
  async verifyHashes(): Promise<void> {
    const { at, splitIntoShares } = this.#dialect;
    const [main, id] = [at(this.#main.name), this.#idColumn];
    const parts = [...this.resource.parts, ...this.shape.goneParts];
    await this.#run(`delete from ${main} where ${id} is null`);
    for (const { name, owner } of parts) await this.#run(`delete from ${at(name)} where ${quoteName(owner)} is null`);
    const [row] = await this.#session.query<{ count: number | string }>(`select count(*) as count from ${main}`);
    for (const whereIn of splitIntoShares(Number(row?.count))) {
      // DuckDB has no keys: repeated rows are read again.
      for (const table of this.tables) {
        const key = table.key.map(quoteName);
        const repeated = `select ${key[0]} from ${at(table.name)} where ${whereIn(key[0] as string)} group by ${key.join(', ')} having count(*) > 1`;
        if (!this.#dialect.hasIndexes)
          await this.#run(`delete from ${at(table.name)} where ${key[0]} in (${repeated})`);
      }
      for (const { name, owner } of parts) {
        const column = quoteName(owner);
        // PostgreSQL compares each row with each id by NOT IN, once the ids exceed work_mem.
        const whereRecord = `exists (select 1 from ${main} m where m.${id} = p.${column})`;
        await this.#run(`delete from ${at(name)} p where ${whereIn(`p.${column}`)} and not ${whereRecord}`);
      }
      const differing = `select id from (${this.#composeHashes(whereIn)}) c where c.computed is distinct from c.stored`;
      await this.#run(`update ${main} set ${versionColumn} = '' where ${id} in (${differing})`);
    }
  }

  noteUpdated(): Promise<void> {
    return this.state.noteStatus({ updated_at: 'current_timestamp' });
  }

  async finish(freshness: Freshness): Promise<void> {
    await requireValues(this.#session, this.#dialect, this.tables, this.shape);
    await this.state.noteFresh(freshness);
    if (this.#dialect.hasIndexes) await this.#makeIndexes();
  }

  async #makeIndexes(): Promise<void> {
    const ofReferences = this.resource.references.map(({ column }) => column);
    for (const table of this.tables)
      for (const column of table.columns) {
        const kind = this.#getKind(table.name, column);
        const isReference = table === this.#main && kind === 'text' && ofReferences.includes(column.name);
        if (isReference || kind === 'date' || kind === 'timestamp')
          await this.#run(
            `create index if not exists ${quoteName(nameIndex(table, column))} on ${this.#dialect.at(table.name)} (${quoteName(column.name)})`,
          );
      }
  }

  #run(sql: string, values?: readonly Value[]): Promise<object[]> {
    return this.#session.query(sql, values);
  }

  #getKind(table: string, column: Column): Kind {
    return this.shape.getNeed(table, column).kind;
  }

  /** Makes a temporary table for the texts of a page, so that the tables of the copy are read once a page. */
  async #makeStagedTable({ name, staged }: WholeTable): Promise<void> {
    await this.#run(`drop table if exists ${this.#dialect.staged(name)}`);
    const columns = staged.map((column) => `${quoteName(column.name)} varchar`);
    await this.#run(
      `create temporary table ${this.#dialect.staged(name)} (${columns.join(', ')}) ${this.#dialect.temporary}`,
    );
  }

  async #stageRecords(slices: AsyncIterable<readonly string[]>): Promise<number> {
    let misfit: string | null = null;
    const { table, parts } = this.resource;
    const flattener = new Flattener(
      this.resource,
      ({ name }, column) => this.#getKind(name, column),
      ({ name }, column, json, id) => {
        if (column.name === getIdColumn(this.resource))
          throw new UnusableDestination(`${name}: an id is ${json.slice(0, 100)}.`);
        const kind = widenKind(this.#getKind(name, column), json);
        misfit ??= `${name}.${column.name} of ${id} is no ${column.kind}, and becomes ${kind}`;
        this.shape.widen(name, column, kind);
      },
    );
    const seen = new Set<string>();
    let count = 0;
    for await (const slice of slices) {
      const records = new Map(slice.map((text) => flattener.flatten(text)).map((record) => [record.id, record]));
      if (misfit !== null) throw new ColumnWidened(misfit);
      const repeated = [...records.keys()].filter((id) => seen.has(id));
      if (repeated.length > 0)
        await this.#deleteRecords(this.#dialect.texts, [JSON.stringify(repeated)], this.#dialect.staged);
      for (const id of records.keys()) seen.add(id);
      await this.#load(table.name, table.columns, [...records.values()], ({ row }) => [row]);
      for (const [i, part] of parts.entries())
        await this.#load(part.name, part.columns, [...records.values()], (record) => record.parts[i] as Row[], 2);
      count += slice.length;
    }
    return count;
  }

  async #load(
    table: string,
    columns: readonly Column[],
    records: readonly FlatRecord[],
    rowsOf: (record: FlatRecord) => readonly Row[],
    offset = 0,
  ): Promise<void> {
    const rows = records.flatMap(rowsOf);
    for (const row of rows)
      for (const [i, column] of columns.entries())
        this.shape.noteValue(table, column, row[offset + i] as string | null);
    if (rows.length > 0) await this.#session.load(table, rows);
  }

  /** Throws Unusable if the stored value would differ. */
  async #refuseLoss(table: WholeTable): Promise<void> {
    const columns = table.staged.filter((column) =>
      /^(timestamp|date|integer|number|boolean)$/.test(this.#getKind(table.name, column)),
    );
    if (columns.length === 0) return;
    const cases = columns.map((column) => {
      const kind = this.#getKind(table.name, column);
      return `when ${this.#dialect.print(kind, `(${this.#cast(table, column.name)})`)} is distinct from ${quoteName(column.name)} then ${quoteLiteral(column.name)}`;
    });
    const id = quoteName(table.key[0] as string);
    const [lost] = await this.#session.query<{ id: string; name: string }>(
      `select * from (select ${id} as id, case ${cases.join(' ')} end as name from ${this.#dialect.staged(table.name)}) t where name is not null limit 1`,
    );
    if (lost !== undefined)
      throw new UnusableDestination(
        `${table.name}.${lost.name} of ${lost.id} cannot be stored without loss in this destination.`,
      );
  }

  #cast(table: WholeTable, name: string, from = ''): string {
    const column = table.columns.find((each) => each.name === name) as Column;
    return `cast(${from}${quoteName(name)} as ${getType(this.#dialect, table, column, this.shape)})`;
  }

  async #deleteRecords(ids: string, values: readonly Value[] = [], at = this.#dialect.at): Promise<void> {
    const gone = at === this.#dialect.at ? this.shape.goneParts : [];
    for (const { name, owner } of [...this.resource.parts, ...gone])
      await this.#run(`delete from ${at(name)} where ${quoteName(owner)} in (${ids})`, values);
    await this.#run(`delete from ${at(this.#main.name)} where ${this.#idColumn} in (${ids})`, values);
  }

  /**
   * Merges the staged rows into the copy. Updates existing rows in the columns that `pull` made, because a reader's tables can refer to
   * them and a reader's columns can be beside them; deletes only missing rows.
   */
  async #merge(): Promise<void> {
    const { at, staged } = this.#dialect;
    const ids = `select ${this.#idColumn} from ${staged(this.#main.name)}`;
    const [known] = await this.#session.query<{ known: boolean }>(
      `select exists (select 1 from ${at(this.#main.name)} where ${this.#idColumn} in (${ids})) as known`,
    );
    for (const table of this.tables) {
      const same = table.key.map((name) => `t.${quoteName(name)} = ${this.#cast(table, name, 's.')}`).join(' and ');
      const whereStaged = `exists (select 1 from ${staged(table.name)} s where ${same})`;
      if (table.owner !== null)
        await this.#run(
          `delete from ${at(table.name)} t where t.${quoteName(table.owner)} in (${ids})${known?.known ? ` and not ${whereStaged}` : ''}`,
        );
      if (known?.known) await this.#update(table, same);
      const whereNew = `not exists (select 1 from ${at(table.name)} t where ${same})`;
      await this.#insert(table, known?.known ? `where ${whereNew}` : '');
    }
  }

  async #update(table: WholeTable, same: string): Promise<void> {
    const values = table.columns
      .filter(({ name }) => !table.key.includes(name))
      .map((column) => `${quoteName(column.name)} = ${this.#composeValue(table, column)}`);
    if (values.length === 0) return;
    await this.#run(
      `update ${this.#dialect.at(table.name)} t set ${values.join(', ')}
       from ${this.#dialect.staged(table.name)} s where ${same}`,
    );
  }

  async #insert(table: WholeTable, where: string): Promise<void> {
    const columns = table.columns.map(({ name }) => quoteName(name));
    const values = table.columns.map((column) => this.#composeValue(table, column));
    await this.#run(
      `insert into ${this.#dialect.at(table.name)} (${columns.join(', ')}) select ${values.join(', ')} from ${this.#dialect.staged(table.name)} s ${where}`,
    );
  }

  #composeValue(table: WholeTable, column: Column): string {
    return table.staged.includes(column) ? this.#cast(table, column.name, 's.') : quoteLiteral(this.#workspaceId);
  }

  /** Selects id, stored hash and computed hash of some records, without a join of the rows themselves. */
  #composeHashes(whereIn: (column: string) => string): string {
    const { at, join, md5, xorOf } = this.#dialect;
    const composeTextOf = (table: WholeTable, columns: readonly Column[]): string =>
      composeRowText(
        this.#dialect,
        columns.map((column) => [column, this.#getKind(table.name, column)] as const),
      );
    const mainText = composeTextOf(
      this.#main,
      this.#main.staged.filter(({ name }) => name !== hashColumn),
    );
    const joins = this.resource.parts.map(({ name, owner }, i) => {
      const table = this.tables[i + 1] as WholeTable;
      const column = quoteName(owner);
      const text = composeTextOf(table, table.staged.slice(1));
      return `left join (select ${column} as id, cast(count(*) as varchar) || ' ' || ${xorOf(md5(text))} as h
        from ${at(name)} where ${whereIn(column)} group by 1) p${i} on p${i}.id = m.id`;
    });
    const hashes = ['m.own', ...this.resource.parts.map((_, i) => `coalesce(p${i}.h, '')`)];
    return `select m.id, m.stored, ${md5(join(hashes))} as computed
      from (select ${this.#idColumn} as id, ${hashColumn} as stored, ${md5(mainText)} as own from ${at(this.#main.name)} where ${whereIn(this.#idColumn)}) m ${joins.join(' ')}`;
  }
}
