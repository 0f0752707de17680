import {
  type Commit,
  type DanglingReferences,
  type Freshness,
  type Origin,
  type Progress,
  type ResourceNotes,
  UnusableDestination,
} from '../destination.js';
import { type Resource, stateTable, statusTable } from '../document.js';
import { type Dialect, quoteName, runInTransaction, type Session } from './dialect.js';
import { Shape } from './shape.js';
import { getIdColumn, isTable } from './tables.js';

/** Makes the tables that `pull` keeps for itself, and returns the number of the last change file. Throws Unusable if a name is taken. */
export async function prepareState(session: Session, { schema, at }: Dialect): Promise<number> {
  const state = at(stateTable);
  if (await isTable(session, schema, stateTable))
    await session.query(`select has_workspace from ${state} limit 1`).catch(() => {
      throw new UnusableDestination(
        `${schema}.${stateTable} was not made by this version of pull: drop the copy, or give another destination.`,
      );
    });
  await session.query(`create table if not exists ${state} (resource varchar primary key, workspace_id varchar, base varchar,
    has_workspace boolean, since varchar, cursor varchar, change_files bigint not null default 0, shape varchar, hidden varchar, stored_at timestamp with time zone)`);
  await session.query(`create table if not exists ${at(statusTable)} (resource varchar primary key, table_name varchar,
    workspace_id varchar, data_as_of timestamp with time zone, updated_at timestamp with time zone,
    compared_at timestamp with time zone, verified_at timestamp with time zone, hidden_references bigint,
    failed_at timestamp with time zone, failure varchar, token_expires_at timestamp with time zone, time_zone varchar)`);
  for (const [column, comment] of Object.entries(statusComments))
    await session.query(`comment on column ${at(statusTable)}.${column} is '${comment}'`);
  const [row] = await session.query<{ files: number | string | null }>(
    `select max(change_files) as files from ${state}`,
  );
  return Number(row?.files ?? 0);
}

const statusComments = {
  data_as_of: 'The copy has everything that was committed before this moment.',
  updated_at: 'When all changes were last stored.',
  compared_at: 'When ids and versions last equalled what the gateway has.',
  verified_at: 'When the content of all records last equalled what came from the gateway.',
  hidden_references: 'References to records that the gateway does not show.',
  failed_at: 'When the resource failed since it was last compared.',
  failure: 'Why it failed.',
  token_expires_at: 'When the access token ends.',
  time_zone: 'In which the days of the API begin; moments are stored in UTC.',
};

/**
 * Takes the destination for an origin. Throws Unusable if it has copies of another, or was made otherwise. With `isReplaced` all is read
 * again; records of another workspace are deleted at once.
 */
export async function claim(
  session: Session,
  { schema, at }: Dialect,
  origin: Origin,
  hasWorkspace: boolean,
  isReplaced: boolean,
): Promise<void> {
  const known = await session.query<{
    workspace_id: string;
    base: string;
    has_workspace: boolean;
    shape: string | null;
  }>(`select workspace_id, base, has_workspace, shape from ${at(stateTable)}`);
  const other = known.find(({ workspace_id, base }) => workspace_id !== origin.workspaceId || base !== origin.base);
  if (other !== undefined && !isReplaced)
    throw new UnusableDestination(
      `This copy is of workspace ${other.workspace_id} of ${other.base}, and the token is of workspace ${origin.workspaceId} of ${origin.base}: ` +
        'give another destination, or --replace to start over.',
    );
  if (known.some(({ has_workspace }) => has_workspace !== hasWorkspace) && !isReplaced)
    throw new UnusableDestination(
      `This copy was made with${hasWorkspace ? 'out' : ''} --workspace-column: run pull as before, give another destination, or --replace to start over.`,
    );
  if (!isReplaced) return;
  await runInTransaction(session, async () => {
    for (const { shape, workspace_id } of known)
      for (const table of workspace_id === origin.workspaceId ? [] : Shape.read(shape).tables)
        if (await isTable(session, schema, table)) await session.query(`delete from ${at(table)}`);
    await session.query(`delete from ${at(statusTable)}`);
    await session.query(
      `update ${at(stateTable)} set workspace_id = $1, base = $2, has_workspace = $3, since = null, cursor = null, hidden = null`,
      [origin.workspaceId, origin.base, hasWorkspace],
    );
  });
}

/** A destination that was taken for an origin. */
export interface ClaimedDestination {
  readonly session: Session;
  readonly dialect: Dialect;
  readonly origin: Origin;
  /** Each table has the column `workspace_id`. */
  readonly hasWorkspace: boolean;
}

/** Keeps progress and shape of the copy of one resource in `pull_state`, and its freshness in `pull_status`. */
export class CopyState {
  readonly #session: Session;
  readonly #dialect: Dialect;

  constructor(
    private readonly claimed: ClaimedDestination,
    private readonly resource: Resource,
  ) {
    this.#session = claimed.session;
    this.#dialect = claimed.dialect;
  }

  /** Notes that the resource is copied to this destination. */
  async insert(): Promise<void> {
    const { origin, hasWorkspace } = this.claimed;
    await this.#session.query(
      `insert into ${this.#dialect.at(stateTable)} (resource, workspace_id, base, has_workspace) values ($1, $2, $3, $4)`,
      [this.resource.name, origin.workspaceId, origin.base, hasWorkspace],
    );
  }

  async read(): Promise<{ readonly progress: Progress; readonly shape: Shape } | null> {
    const [row] = await this.#session.query<Progress & { shape: string | null }>(
      `select since, cursor, shape from ${this.#dialect.at(stateTable)} where resource = $1`,
      [this.resource.name],
    );
    return row === undefined
      ? null
      : { progress: { since: row.since, cursor: row.cursor }, shape: Shape.read(row.shape) };
  }

  async noteProgress({ since, cursor, changeFiles }: Commit, shape: Shape): Promise<void> {
    await this.#session.query(
      `update ${this.#dialect.at(stateTable)} set since = $2, cursor = $3, change_files = $4, shape = $5, stored_at = current_timestamp where resource = $1`,
      [this.resource.name, since, cursor, changeFiles, shape.text],
    );
  }

  async keepShape(shape: Shape): Promise<void> {
    await this.#session.query(`update ${this.#dialect.at(stateTable)} set shape = $2 where resource = $1`, [
      this.resource.name,
      shape.text,
    ]);
  }

  /** Forgets the progress, so that everything is read again. */
  async reset(shape: Shape): Promise<void> {
    await this.#session.query(
      `update ${this.#dialect.at(stateTable)} set since = null, cursor = null, shape = $2 where resource = $1`,
      [this.resource.name, shape.text],
    );
  }

  /** Notes something about the resource in `pull_status`: values as SQL, with parameters from $4 on. */
  async noteStatus(
    values: Readonly<Record<string, string>>,
    parameters: readonly (string | null)[] = [],
  ): Promise<void> {
    const names = Object.keys(values);
    await this.#session.query(
      `insert into ${this.#dialect.at(statusTable)} (resource, table_name, workspace_id, ${names.join(', ')})
       values ($1, $2, $3, ${Object.values(values).join(', ')}) on conflict (resource) do update
       set ${names.map((name) => `${name} = excluded.${name}`).join(', ')}`,
      [this.resource.name, this.resource.table.name, this.claimed.origin.workspaceId, ...parameters],
    );
  }

  /** Notes no moment in the future, because the clock of the gateway is then ahead. */
  noteFresh({ dataAsOf, isVerified }: Freshness): Promise<void> {
    const [moment, expiry] = [4, 5].map((i) => `cast($${i} as timestamp with time zone)`);
    return this.noteStatus(
      {
        data_as_of: `case when ${moment} <= current_timestamp + interval '5 seconds' then least(${moment}, current_timestamp) end`,
        compared_at: 'current_timestamp',
        ...(isVerified && { verified_at: 'current_timestamp' }),
        failed_at: 'null',
        failure: 'null',
        token_expires_at: expiry as string,
        time_zone: '$6',
      },
      [dataAsOf, this.claimed.origin.tokenExpiresAt, this.claimed.origin.timeZone],
    );
  }
}

/** Finds references between the `resources` that lead nowhere, by resource. */
export async function findDangling(
  session: Session,
  { at, xorOf, md5 }: Dialect,
  resources: readonly Resource[],
): Promise<Map<string, DanglingReferences>> {
  const dangling = new Map<string, DanglingReferences>();
  for (const { name, table, references } of resources)
    for (const { column, resource } of references) {
      const target = resources.find((each) => each.name === resource);
      if (target === undefined) continue;
      const value = `cast(${quoteName(column)} as varchar)`;
      const [row] = await session.query<{ count: number | string | null; digest: string | null }>(
        `select sum(n) as count, ${xorOf(md5('target'))} as digest from (
           select ${value} as target, count(*) as n from ${at(table.name)} where ${quoteName(column)} is not null
             and not exists (select 1 from ${at(target.table.name)} t where t.${quoteName(getIdColumn(target))} = ${value})
           group by 1) missing`,
      );
      const before = dangling.get(name) ?? { count: 0, digest: '' };
      const digest = row?.digest == null ? '' : ` ${column} ${row.digest}`;
      dangling.set(name, { count: before.count + Number(row?.count ?? 0), digest: before.digest + digest });
    }
  return dangling;
}

/** Notes of the runs before, by resource. */
export async function readNotes(session: Session, { at }: Dialect): Promise<Map<string, ResourceNotes>> {
  const rows = await session.query<{ resource: string; hidden: string | null; shape: string | null }>(
    `select resource, hidden, shape from ${at(stateTable)}`,
  );
  return new Map(
    rows.map(({ resource, hidden, shape }) => [resource, { dangling: hidden ?? '', tables: Shape.read(shape).tables }]),
  );
}

export async function noteDangling(
  session: Session,
  { at }: Dialect,
  found: ReadonlyMap<string, DanglingReferences>,
): Promise<void> {
  for (const [resource, { count, digest }] of found) {
    await session.query(`update ${at(stateTable)} set hidden = $2 where resource = $1`, [resource, digest]);
    await session.query(`update ${at(statusTable)} set hidden_references = $2 where resource = $1`, [resource, count]);
  }
}

/** Notes why a resource was not brought up to date, even if it has no table yet. */
export async function noteFailure(session: Session, { at }: Dialect, resource: string, failure: string): Promise<void> {
  await session.query(
    `insert into ${at(statusTable)} (resource, failed_at, failure) values ($1, current_timestamp, $2)
     on conflict (resource) do update set failed_at = excluded.failed_at, failure = excluded.failure`,
    [resource, failure],
  );
}
