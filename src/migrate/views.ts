import pg from 'pg';
import { fileStates, inTransaction, MigrationFailed, noteApplied, refused, type SqlFile } from './sql-files.js';

/**
 * DROP VIEW waits for running statements, and all later statements wait behind it: so the wait is short and is repeated. A
 * statement of the gateway waits 1 s for a lock at most (gateway_reader) or 2 s (gateway_writer).
 */
const whileInUse = { lockMs: 300, pauseMs: 700, attempts: 60, isPassing: isInUse };
const hasDependents = '2BP01';

/** SQLSTATEs of a lock that was not granted in time, and of a deadlock with a statement of the app. */
function isInUse({ code }: { readonly code?: string }): boolean {
  return code === '55P03' || code === '40P01';
}

/** The objects and privileges that a file made. */
interface Applied {
  readonly root: string;
  readonly name: string;
  readonly objects: readonly string[];
  readonly revokes: readonly string[];
}

/**
 * Brings the views of the files up to date: those of files that differ from the database's, and those that depend on them, are dropped and
 * created again, in one transaction; other sessions see either the old ones or the new ones, and other views stay as they are. `all`: as if
 * each file had changed. Throws MigrationFailed with the file, or when the views are in use for a minute.
 */
export async function replaceViews(client: pg.Client, files: readonly SqlFile[], { all = false } = {}): Promise<void> {
  const states = await fileStates(client, ['views', 'gateway'], files);
  const stale = new Set(states.filter(({ state }) => all || state !== 'applied').map(keyOf));
  const applied = await appliedFiles(client);
  const outdated = await withDependents(client, applied, stale);
  for (const file of outdated) stale.add(keyOf(file));
  const before = await schemaObjects(client, []);
  const privileges = await appPrivileges(client);
  await replace(client, async () => {
    await drop(client, outdated, privileges);
    const known = before.map(({ oid }) => oid);
    const granted = new Set(privileges);
    for (const { revokes } of outdated) for (const revoke of revokes) granted.delete(revoke);
    for (const file of files) if (stale.has(keyOf(file))) await create(client, file, known, granted);
  });
}

/** Drops all that the files created, in one transaction. Throws MigrationFailed as replaceViews does. */
export async function dropViews(client: pg.Client): Promise<void> {
  const privileges = await appPrivileges(client);
  const applied = await appliedFiles(client);
  await replace(client, () => drop(client, applied, privileges));
}

async function replace(client: pg.Client, work: () => Promise<void>): Promise<void> {
  await inTransaction(client, whileInUse, work).catch((error: Error) => {
    if (!isInUse((error.cause ?? error) as { code?: string })) throw error;
    throw new MigrationFailed(
      `The views are in use: no lock in ${whileInUse.attempts} attempts. pg_stat_activity names the statements that run for so long. Nothing was changed.`,
    );
  });
}

const keyOf = ({ root, name }: { readonly root: string; readonly name: string }): string => `${root}/${name}`;

/** In the order in which they are applied. */
async function appliedFiles(client: pg.Client): Promise<Applied[]> {
  const { rows } = await client.query<Applied>(
    `select root, name, objects, revokes from gateway.applied_files where root in ('views', 'gateway') order by root desc, name collate "C"`,
  );
  return rows;
}

/**
 * Objects that depend on these, directly or not, as DROP names them: a rule, trigger or default stands for its view, and the row type of a view for
 * the functions that use it.
 */
const dependents = `
  with recursive present as (
    select d.classid, d.objid, concat(o.type, ' ', o.identity) as object
    from pg_depend d, pg_identify_object(d.classid, d.objid, 0) o
    where d.refclassid = 'pg_namespace'::regclass and d.deptype = 'n'
      and d.refobjid in (select oid from pg_namespace where nspname in ('gateway', 'records'))
  ), above (classid, objid) as (
    select classid, objid from present where object = any ($1)
    union
    select case when owner.oid is null then d.classid else 'pg_class'::regclass::oid end, coalesce(owner.oid, d.objid)
    from above a join pg_depend d on d.refclassid = a.classid and d.refobjid = a.objid
      cross join lateral (select case d.classid
        when 'pg_rewrite'::regclass then (select ev_class from pg_rewrite where oid = d.objid)
        when 'pg_trigger'::regclass then (select tgrelid from pg_trigger where oid = d.objid)
        when 'pg_attrdef'::regclass then (select adrelid from pg_attrdef where oid = d.objid) end as oid) owner
  )
  select object from present join above using (classid, objid)`;

/** The applied files of these keys, and those whose objects depend on theirs. */
async function withDependents(
  client: pg.Client,
  applied: readonly Applied[],
  keys: ReadonlySet<string>,
): Promise<Applied[]> {
  const objects = applied.filter((file) => keys.has(keyOf(file))).flatMap((file) => file.objects);
  const { rows } = await client.query<{ object: string }>(dependents, [objects]);
  const dropped = new Set(rows.map(({ object }) => object));
  return applied.filter((file) => keys.has(keyOf(file)) || file.objects.some((object) => dropped.has(object)));
}

/**
 * Takes back what the files granted, and drops what they created: from the last file to the first, and an object that another one depends on
 * after that one, such as a function after the view whose trigger calls it.
 */
async function drop(client: pg.Client, files: readonly Applied[], privileges: readonly string[]): Promise<void> {
  const keys = files.map(keyOf);
  await client.query(`delete from gateway.applied_files where root || '/' || name = any ($1)`, [keys]);
  for (const revoke of files.flatMap(({ revokes }) => revokes))
    if (privileges.includes(revoke)) await client.query(revoke);
  let objects = files.flatMap((file) => file.objects).reverse();
  while (objects.length > 0) {
    const kept: string[] = [];
    let refusal: unknown;
    for (const object of objects) {
      try {
        // DROP COLUMN … CASCADE of the app takes views with it.
        await client.query(`savepoint object; drop ${object.replace(/ (?=(gateway|records)\.)/, ' if exists ')}`);
      } catch (error) {
        if ((error as { code?: string }).code !== hasDependents) throw error;
        await client.query('rollback to savepoint object');
        kept.push(object);
        refusal = error;
      }
    }
    if (kept.length === objects.length) {
      const { message, detail } = refusal as pg.DatabaseError; // names such as that of a view of the app that reads one of these
      throw new MigrationFailed(`${message}: ${detail}`, { cause: refusal });
    }
    objects = kept;
  }
}

/** Runs the file and notes what it made; adds that to what is known. EXECUTE refuses COMMIT and the like, which would leave half of the views behind. */
async function create(client: pg.Client, file: SqlFile, known: string[], granted: Set<string>): Promise<void> {
  const sql = await withTypes(client, file);
  const executed = pg.escapeLiteral(`begin execute ${pg.escapeLiteral(sql)}; end`);
  await client.query(`do ${executed}`).catch((error: unknown) => {
    throw refused({ ...file, sql }, error);
  });
  const created = await schemaObjects(client, known);
  const stored = created.find(({ type }) => type === 'table' || type === 'sequence');
  if (stored !== undefined)
    throw new MigrationFailed(
      `${keyOf(file)}: it creates the ${stored.object}, whose rows would be lost with the next change of a view.`,
    );
  const grants = file.root === 'views' && /\bgrant\b/i.test(sql);
  const revokes = grants ? (await appPrivileges(client)).filter((revoke) => !granted.has(revoke)) : [];
  await noteApplied(client, file, { objects: created.map(({ object }) => object), revokes });
  known.push(...created.map(({ oid }) => oid));
  for (const revoke of revokes) granted.add(revoke);
}

/** The SQL of views that are made of a definition, with the types that the workspace has in the operator's views, and digests of those. */
export async function withTypes(client: pg.Client, { root, name, sql }: SqlFile): Promise<string> {
  if (root !== 'gateway') return sql;
  const views = [...new Set([...sql.matchAll(/\{type of ([\w.]+)\}/g)].map(([, view]) => view as string))];
  const { rows } = await client.query<{ view: string; isThere: boolean; type: string | null; digest: string }>(
    `select v.view, to_regclass(v.view) is not null as "isThere", format_type(a.atttypid, a.atttypmod) as type,
       ('x' || left(md5(pg_get_viewdef(to_regclass(v.view))), 16))::bit(64)::bigint as digest
     from unnest($1::text[]) v (view) left join pg_attribute a on a.attrelid = to_regclass(v.view) and a.attname = 'workspace_id'`,
    [views],
  );
  const known = new Map<string, { readonly type: string; readonly digest: string }>();
  for (const { view, isThere, type, digest } of rows) {
    if (type === null)
      throw new MigrationFailed(
        `The definition of ${name} reads ${view}, which ${isThere ? 'has no column workspace_id' : 'does not exist'}: ${isThere ? 'add it to the view' : 'create it in a file of the views'}.`,
      );
    known.set(view, { type, digest: `(${digest})::bigint` });
  }
  return sql.replace(/\{(type|digest) of ([\w.]+)\}/g, (_, which: 'type' | 'digest', view: string) =>
    String(known.get(view)?.[which]),
  );
}

interface SchemaObject {
  readonly oid: string;
  readonly type: string;
  /** As DROP names it: "view gateway.klanten". */
  readonly object: string;
}

/** The objects of both schemas that are not known, in the order of their creation: parts of an object, such as the row type of a view, are not listed. */
async function schemaObjects(client: pg.Client, known: readonly string[]): Promise<SchemaObject[]> {
  const { rows } = await client.query<SchemaObject>(
    `select d.objid as oid, o.type, concat(o.type, ' ', o.identity) as object
     from pg_depend d, pg_identify_object(d.classid, d.objid, 0) o
     where d.refclassid = 'pg_namespace'::regclass and d.deptype = 'n' and not d.objid = any ($1::oid[])
       and d.refobjid in (select oid from pg_namespace where nspname in ('gateway', 'records'))
     order by d.objid`,
    [known],
  );
  return rows;
}

/**
 * The privileges of the gateway's roles outside its schema, each as the REVOKE that takes it away. The files of the views grant
 * them on the app's tables, where no DROP removes them.
 */
async function appPrivileges(client: pg.Client): Promise<string[]> {
  const { rows } = await client.query<{ revoke: string }>(`
    select format('revoke %s%s on %s %s from %I', a.privilege_type, o.columns, o.kind, o.name, r.rolname) as revoke
    from (
      select case c.relkind when 'S' then 'sequence' else 'table' end as kind, c.oid::regclass::text as name, '' as columns,
        c.relacl as acl, c.relnamespace as schema from pg_class c
      union all
      select 'table', c.oid::regclass::text, format(' (%I)', t.attname), t.attacl, c.relnamespace
      from pg_attribute t join pg_class c on c.oid = t.attrelid where t.attacl is not null
      union all
      select 'schema', quote_ident(n.nspname), '', n.nspacl, n.oid from pg_namespace n
      union all
      select 'routine', p.oid::regprocedure::text, '', p.proacl, p.pronamespace from pg_proc p) o
      cross join lateral aclexplode(case when o.acl::text ~ 'gateway_' then o.acl end) a
      join pg_roles r on r.oid = a.grantee
    where r.rolname in ('gateway_owner', 'gateway_reader', 'gateway_writer')
      and o.schema not in (select oid from pg_namespace where nspname in ('gateway', 'records'))
    order by 1`);
  return rows.map(({ revoke }) => revoke);
}
