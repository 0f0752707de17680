import pg from 'pg';
import { readProject } from '../../base/paths.js';
import { lockNotAvailable, undefinedTable } from '../../postgres/database-errors.js';
import {
  createObjects,
  explainRefusal,
  MigrationFailed,
  noteApplied,
  type Root,
  readFileStates,
  runInTransaction,
  type SqlFile,
} from './sql-files.js';

// Example: the operator has changed klanten.sql, and the view of werkbonnen.sql reads the view of klanten.sql.
//   1. A drop with CASCADE, which is rolled back, finds the files that depend on it: werkbonnen.sql, and the gateway's walls around both.
//   2. The objects of all these files are dropped, the last one first. A drop that a dependent object refuses is repeated after the others.
//   3. The files are run again. A file that reads a view of a later file is repeated after that file.
// If no lock is granted within 300 ms, because a statement uses a view, the transaction is rolled back and begins again 700 ms later.

const isInUse = ({ code = '' }: { readonly code?: string }): boolean => [lockNotAvailable, '40P01'].includes(code);

/** DROP VIEW waits for running statements, and later ones wait behind it: so the wait is short and repeated. */
const viewRetries = { lockMs: 300, pauseMs: 700, attempts: 60, isPassing: isInUse };
const dependentObjectsExist = '2BP01';

interface AppliedFile {
  readonly root: string;
  readonly name: string;
  readonly objects: readonly string[];
}

/** Replaces changed views and their dependents in one transaction. Throws MigrationFailed, also when views are in use for a minute. */
export async function replaceViews(client: pg.Client, files: readonly SqlFile[]): Promise<void> {
  await repeatWhileInUse(client, async () => {
    const knownOids = (await readSchemaObjects(client, [])).map(({ oid }) => oid);
    const states = await readFileStates(client, ['views', 'gateway'], files);
    const changed = states.filter(({ state }) => state !== 'applied').map(getFileKey);
    const applied = await addDependents(client, changed);
    const appliedKeys = applied.map(getFileKey);
    const stale = [...changed, ...appliedKeys];
    await client.query(`delete from gateway.applied_files where root || '/' || name = any ($1)`, [appliedKeys]);
    await dropInOrder(client, composeDrops(applied.flatMap(({ objects }) => objects)));
    const { rows } = await client.query<{ oid: string }>('select oid from pg_policy');
    const due = files.filter((file) => stale.includes(getFileKey(file)));
    for (const root of new Set(due.map((file) => file.root))) await createInOrder(client, root, due, knownOids);
    await client.query(noteNewPolicies, [rows.map(({ oid }) => oid)]);
  });
}

/** Notes the policies of a file, which it makes again whenever it is applied. */
const noteNewPolicies = `insert into gateway.undo (statement)
  select s from pg_policy p join pg_class c on c.oid = polrelid join pg_namespace n on n.oid = relnamespace
    cross join format('drop policy if exists %I on %I.%I', polname, nspname, relname) s
  where not p.oid = any ($1) and s not in (select statement from gateway.undo)`;

/** Drops the views that read these tables, or all (null). Returns their files, which stay noted: `serve` then expects a release. */
export function dropViews(client: pg.Client, tables: readonly string[] | null): Promise<string[]> {
  return repeatWhileInUse(client, async () => {
    const { rows } = await client.query<AppliedFile>(readProject('sql/catalog/files-over.sql'), [tables]);
    const files = await addDependents(client, rows.map(getFileKey));
    await dropInOrder(client, composeDrops(files.flatMap(({ objects }) => objects)));
    return files.map(getFileKey);
  });
}

/** Adds the files whose objects a drop of these would drop. */
async function addDependents(client: pg.Client, keys: readonly string[]): Promise<AppliedFile[]> {
  await client.query('savepoint trial');
  const files = await readAppliedFiles(client, keys);
  for (const statement of composeDrops(files.flatMap(({ objects }) => objects)))
    await client.query(`${statement} cascade`);
  const gone = `select root, name from gateway.applied_files where root <> 'core' and digest is not null and gateway.digest_of(objects) is null`;
  const { rows } = await client.query<AppliedFile>(gone);
  await client.query('rollback to savepoint trial');
  return readAppliedFiles(client, [...keys, ...rows.map(getFileKey)]);
}

export function repeatWhileInUse<T>(client: pg.Client, work: () => Promise<T>): Promise<T> {
  return runInTransaction(client, viewRetries, work).catch((error: Error) => {
    if (!isInUse((error.cause ?? error) as { code?: string })) throw error;
    throw new MigrationFailed(
      `The views are in use: no lock in ${viewRetries.attempts} attempts. pg_stat_activity names the statements that run for so long. Nothing was changed.`,
    );
  });
}

const getFileKey = ({ root, name }: { readonly root: string; readonly name: string }): string => `${root}/${name}`;

async function readAppliedFiles(client: pg.Client, keys: readonly string[]): Promise<AppliedFile[]> {
  const text = `select root, name, objects from gateway.applied_files
    where root in ('views', 'gateway') and root || '/' || name = any ($1) order by root desc, name collate "C"`;
  return (await client.query<AppliedFile>(text, [keys])).rows;
}

/** Drops from the last to the first. DROP COLUMN … CASCADE of the app may have dropped some. */
export function composeDrops(objects: readonly string[]): string[] {
  return objects.toReversed().map((object) => `drop ${object.replace(/ (?=(gateway|records)\.)/, ' if exists ')}`);
}

/** Runs a statement after the statement that drops a dependent object. Throws MigrationFailed, which names what else needs an object. */
export async function dropInOrder(client: pg.Client, statements: readonly string[]): Promise<void> {
  const needsOther = ({ code }: pg.DatabaseError): boolean => code === dependentObjectsExist;
  const drop = (statement: string): Promise<unknown> => client.query(statement);
  await runInOrder(client, statements, drop, needsOther).catch((refusal: pg.DatabaseError) => {
    if (!needsOther(refusal)) throw refusal;
    throw new MigrationFailed(`${refusal.message}: ${refusal.detail}`, { cause: refusal });
  });
}

/** Puts off an item that another one must precede. Throws the error of the first item when none of the rest succeeds. */
async function runInOrder<T, E extends Error>(
  client: pg.Client,
  items: readonly T[],
  run: (item: T) => Promise<unknown>,
  needsOther: (error: E) => boolean,
): Promise<void> {
  for (let remaining = items; remaining.length > 0; ) {
    const later: T[] = [];
    let refusal: E | undefined;
    for (const item of remaining) {
      await client.query('savepoint object');
      await run(item).catch(async (error: E) => {
        if (!needsOther(error)) throw error;
        await client.query('rollback to savepoint object');
        later.push(item);
        refusal ??= error;
      });
    }
    if (later.length === remaining.length) throw refusal;
    remaining = later;
  }
}

/** Creates a file of the root that reads a view of a later one after that file. Throws MigrationFailed. */
function createInOrder(client: pg.Client, root: Root, due: readonly SqlFile[], knownOids: string[]): Promise<void> {
  const files = due.filter((file) => file.root === root);
  const create = (file: SqlFile): Promise<void> => createView(client, file, knownOids);
  return runInOrder(client, files, create, ({ cause }) => (cause as pg.DatabaseError)?.code === undefinedTable);
}

/** Runs the file by EXECUTE, which refuses COMMIT and the like: they would leave half of the views behind. */
async function createView(client: pg.Client, file: SqlFile, knownOids: string[]): Promise<void> {
  const sql = await addTypes(client, file);
  const executed = pg.escapeLiteral(`begin execute ${pg.escapeLiteral(sql)}; end`);
  await createObjects(client, `do ${executed}`).catch((error: unknown) => {
    throw explainRefusal({ ...file, sql }, error);
  });
  const created = await readSchemaObjects(client, knownOids);
  const stored = created.find(({ type }) => type === 'table' || type === 'sequence');
  if (stored !== undefined)
    throw new MigrationFailed(
      `${getFileKey(file)}: it creates the ${stored.object}, whose rows would be lost with the next change of a view.`,
    );
  const objects = created.map(({ object }) => object);
  await noteApplied(client, file, objects);
  knownOids.push(...created.map(({ oid }) => oid));
}

/** Adds the types that workspace_id has in the operator's views, and digests of these views. */
export async function addTypes(client: pg.Client, { root, name, sql }: SqlFile): Promise<string> {
  if (root !== 'gateway') return sql;
  const views = [...new Set([...sql.matchAll(/\{type of ([\w.]+)\}/g)].map(([, view]) => view as string))];
  const { rows } = await client.query<{ view: string; isThere: boolean; type: string | null; digest: string }>(
    `select v.view, to_regclass(v.view) is not null as "isThere", format_type(a.atttypid, a.atttypmod) as type,
       format('(%s)::bigint', ('x' || left(md5(pg_get_viewdef(to_regclass(v.view))), 16))::bit(64)::bigint) as digest
     from unnest($1::text[]) v (view) left join pg_attribute a on a.attrelid = to_regclass(v.view) and a.attname = 'workspace_id'`,
    [views],
  );
  const rowsByView = new Map(rows.map((row) => [row.view, row]));
  const lacking = rows.find(({ type }) => type === null);
  if (lacking !== undefined)
    throw new MigrationFailed(
      `The definition of ${name} reads ${lacking.view}, which ${lacking.isThere ? 'has no column workspace_id' : 'does not exist'}: write it in a file of the views.`,
    );
  return sql.replace(/\{(type|digest) of ([\w.]+)\}/g, (_, which: 'type' | 'digest', view: string) =>
    String(rowsByView.get(view)?.[which]),
  );
}

interface SchemaObject {
  readonly oid: string;
  readonly type: string;
  /** Named as DROP names it: "view gateway.klanten". */
  readonly object: string;
}

/** Returns objects in the order of their creation, without parts such as row types. */
export async function readSchemaObjects(client: pg.Client, knownOids: readonly string[]): Promise<SchemaObject[]> {
  return (await client.query<SchemaObject>(readProject('sql/catalog/schema-objects.sql'), [knownOids])).rows;
}
