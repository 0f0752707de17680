import { shortened } from '../migrate/indexes.js';
import { columnOf, type SampleRow, type Table, valuesOf } from './catalog.js';
import { alias, rowXid } from './columns.js';
import type { Draft } from './draft.js';
import { leadOf } from './lists.js';
import { isNamed } from './names.js';
import type { Survey } from './survey.js';
import { idColumn, type Tenant, type WorkspaceOf } from './tenant.js';

/** The SQL file of a view, in the form of those in sql/views. Of a resource that is written it has the columns and defaults that a new row needs. */
export function viewFile(draft: Draft): string {
  const { subject, view, list, open, write, sync } = draft;
  const { table } = subject;
  const stamps = write?.stamps ?? [];
  const added = stamps.filter(({ isAdded }) => isAdded).map(({ name, of }) => as(`${alias}.${of.quoted}`, name));
  const sequences = write ? [...new Set(table.columns.flatMap(({ sequence }) => sequence ?? []))] : [];
  return [
    comment(`${heading(view)}: drafted from ${table.quoted} by \`adopt\`.`),
    comment(
      `Relies on an index on ${table.quoted} (${[leadOf(subject).name, ...list.order].join(', ')}) for lists and on the primary key for details.`,
    ),
    ...openLines(open),
    `${definitionOf(draft, [...(sync.sync ? [`${alias}.xmin as ${rowXid}`] : []), ...added])};`,
    ...stamps.map(
      ({ name, value }) => `alter view records.${view} alter column ${name} set default ${value}; -- as the app does`,
    ),
    ...sequences.map(
      (name) =>
        `grant usage on sequence ${name} to gateway_writer; -- a column default runs with the rights of the inserting role`,
    ),
    '',
  ].join('\n');
}

/** CREATE VIEW without its end. */
function definitionOf({ subject, view, columns, softDelete, parts }: Draft, more: readonly string[]): string {
  const items = [
    as(workspaceSql(subject), 'workspace_id'),
    ...[...columns].map(([name, { select }]) => as(select, name)),
    ...parts.map(({ name, sql }) => `${sql} as ${name}`),
    ...more,
  ];
  return [
    `create view records.${view} as`,
    `  select\n    ${items.join(',\n    ')}`,
    ...fromOf(subject.table.quoted, subject),
    ...(softDelete ? [`  where ${softDelete.condition}`] : []),
  ].join('\n');
}

/** The file of a proposed index; PostgreSQL and the command `migrate --indexes` cut no name below 64 bytes. */
export function indexFile(name: string, purpose: string, { quoted }: Table, definition: string): [string, string] {
  const file = shortened(name, 55);
  const sql = `create index concurrently if not exists gateway_${file}
  on ${quoted} ${definition};
`;
  return [
    `indexes/${file}.sql`,
    `${comment(purpose)}
${sql}`,
  ];
}

function heading(view: string): string {
  const words = view.replaceAll('_', ' ');
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}`;
}

/** The SQL of tokens.sql or key_ids.sql, and its open points. */
export interface SharedFile {
  readonly sql: string;
  readonly open: readonly string[];
}

/** tokens.sql: the table of tokens is the gateway's; workspaces and owners are the app's. */
export function tokensFile({ tenant, users, userRows, leftOut }: Survey, drafts: readonly Draft[]): SharedFile {
  const own = leftOut.find(({ table }) => /token|api_?key/i.test(table.name));
  const label = tenant.root?.columns.find(({ name }) => isNamed('label', name))?.quoted;
  const id = tenant.rootId?.quoted;
  const largest = drafts
    .map(({ subject }) => subject)
    .filter(({ steps }) => steps.length === 0)
    .sort((a, b) => b.table.rows - a.table.rows)
    .at(-1);
  const workspaces =
    tenant.root === undefined
      ? `select distinct ${largest?.tenant.quoted} as id, ${largest?.tenant.quoted}::text as name from ${largest?.table.quoted}\n  where ${largest?.tenant.quoted} is not null`
      : `select ${as(`${id}`, 'id')}, ${as(label ?? `${id}::text`, 'name')} from ${tenant.root.quoted}`;
  const owners = ownersOf(users, userRows, tenant);
  const open = [
    ...(tenant.isSure ? [] : [`the workspace is a guess: ${tenant.reason}.`]),
    ...(tenant.root
      ? []
      : ['no table lists the workspaces, so they are read from the rows of a small table: show them from a list.']),
    ...(tenant.root && !label ? [`no column of ${tenant.root.quoted} names a workspace, so its id does.`] : []),
    ...(own
      ? [`${own.table.quoted} may be a table of tokens; the tokens of the API are kept in gateway.tokens all the same.`]
      : []),
    ...owners.open,
  ];
  const sql = `-- Tokens, their workspaces and their owners, for the functions of sql/core/003_tokens.sql. No login role may read these.
${openLines(open)
  .map((line) => `${line}\n`)
  .join('')}create view gateway.api_tokens as select * from gateway.tokens;
grant select on gateway.api_tokens to gateway_owner; -- the owner of find_token

create view gateway.workspaces as ${workspaces};

create view gateway.token_owners as ${owners.sql};
`;
  return { sql, open };
}

/** key_ids.sql: counts of the key ids in use, of every sealed column, with one scan per table. */
export function keyIdsFile(drafts: readonly Draft[]): SharedFile {
  const read = drafts.filter(({ sealed }) => sealed.length > 0);
  const scans = read.map(scanOf);
  const body =
    scans.length === 0
      ? 'select null::text, 0::bigint where false'
      : `select used.key_id, count(*) from (\n${scans.join('\n      union all\n')}\n    ) used where used.key_id <> '' group by 1`;
  const sql = `-- The ids of the data keys in use, over all workspaces, with the number of values seen: \`check\` and \`serve\` compare them with
-- the keyring. SECURITY DEFINER because the wall shows no row without a workspace; all that comes out are key ids and counts.
-- Columns, prefixes and key ids are those of the codecs in the definitions: change both together.
-- Of a large table a sample of some 20,000 rows: a key that only a handful of rows use can be missed.
${read.map(grantsOf).join('')}create function gateway.key_ids() returns table (key_id text, seen bigint)
  language sql stable security definer set search_path = ''
  as ${dollarQuoted(`
    ${body}
  `)};
alter function gateway.key_ids() owner to gateway_owner;
revoke all on function gateway.key_ids() from public;
grant execute on function gateway.key_ids() to gateway_reader;
`;
  return { sql, open: [] };
}

/** The owner of the function may read these columns and no others. */
function grantsOf({ subject, sealed }: Draft): string {
  const columns = sealed.flatMap(({ column, keyColumn }) => [column, ...(keyColumn ? [keyColumn] : [])]);
  const { quoted } = subject.table;
  return `grant usage on schema ${/^(?:"(?:[^"]|"")*"|[^.]+)/.exec(quoted)?.[0]} to gateway_owner;
grant select (${[...new Set(columns.map((column) => column.quoted))].join(', ')}) on ${quoted} to gateway_owner;
`;
}

/** SQL of the key ids in the sealed columns of a table. */
function scanOf({ subject, sealed }: Draft): string {
  const { quoted } = subject.table;
  const name = literal(quoted);
  const ids = sealed.map(({ column, keyColumn, keyId, prefixes }) => {
    const value = `s.${column.quoted}`;
    if (keyColumn) return `(case when ${value} is not null then s.${keyColumn.quoted}::text end)`;
    if (keyId !== undefined) return `(case when ${value} is not null then ${literal(keyId)} end)`;
    const cases = prefixes.map(
      ({ head, end }) =>
        `when starts_with(${value}, ${literal(head)}) then split_part(substr(${value}, ${head.length + 1}), ${literal(end)}, 1)`,
    );
    return `(case ${cases.join(' ')} end)`;
  });
  return `      select v.key_id
      from ${quoted} s tablesample system (
          (select least(100, 100 * 20000 / greatest(sum(case when l.reltuples < 0 then pg_relation_size(l.oid) / 100 else l.reltuples end), 1))
            from pg_class l where l.relkind = 'r'
              and (l.oid = ${name}::regclass or l.oid in (select relid from pg_partition_tree(${name}::regclass)))))
        cross join lateral (values
          ${ids.join(',\n          ')}) v (key_id)`;
}

/**
 * row_security.sql: a policy for each table with row-level security of the app that the views read. Without one PostgreSQL shows their
 * owner no row, and says nothing (chapter "Row Security Policies"). Undefined: there is no such table.
 */
export function rowSecurityFile({ subjects }: Survey): SharedFile | undefined {
  const read = new Set(
    subjects.flatMap(({ table, steps, parts }) => [table, ...steps.map((step) => step.table), ...parts]),
  );
  const tables = [...read].filter(({ rowSecurity }) => rowSecurity);
  if (tables.length === 0) return undefined;
  const open = tables.flatMap(openPoints);
  const sql = [
    `-- The app's row-level security may show no row of these tables to the role that runs migrate, as which the views read. The tenant wall divides them instead: true lets`,
    `-- PostgreSQL plan as if there were no policy, where a condition would keep indexes on expressions from use.`,
    ...openLines(open),
    ...tables.flatMap(({ quoted }) => [
      `drop policy if exists gateway on ${quoted};`,
      `create policy gateway on ${quoted} to current_user using (true);`,
    ]),
    '',
  ].join('\n');
  return { sql, open };
}

function openPoints({ quoted, restrictive, isSampled }: Table): string[] {
  return [
    ...restrictive.map(
      (policy) =>
        `the restrictive policy ${policy} of ${quoted} holds for the views' owner, too, and can hide rows: name the app's roles in it (ALTER POLICY … TO …).`,
    ),
    ...(isSampled
      ? []
      : [
          `row-level security of ${quoted} hides rows from the role of ADMIN_URL, so the guesses may rest on no value.`,
        ]),
  ];
}

// Names of the catalog enter the SQL of a draft in three ways: as PostgreSQL quotes them (`quoted`), in a comment, and in a text.

/** A comment of one line: what a name says in it is never SQL. */
export function comment(text: string): string {
  return `-- ${text.replace(/[\r\n]+/g, ' ')}`;
}

/** Comment lines that \`grep -rn OPEN:\` finds. */
function openLines(points: readonly string[]): string[] {
  return points.map((point) => comment(`OPEN: ${point}`));
}

function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

/** The body of a function between dollar quotes that it does not hold itself. */
function dollarQuoted(body: string): string {
  let quote = '$$';
  for (let n = 1; body.includes(quote); n++) quote = `$body${n}$`;
  return `${quote}${body}${quote}`;
}

// The workspace of a drafted view's rows: a column of the table, or of one to which its references lead.

/** SQL of the workspace of a row. */
export function workspaceSql({ tenant, steps }: WorkspaceOf): string {
  return `${aliasOf(steps.length)}.${tenant.quoted}`;
}

/** FROM with the tables that the steps lead to. */
export function fromOf(quoted: string, { steps }: WorkspaceOf): string[] {
  return [
    `  from ${quoted} ${alias}`,
    ...steps.map(
      ({ from, table, to }, i) =>
        `    join ${table.quoted} ${aliasOf(i + 1)} on ${aliasOf(i + 1)}.${to.quoted} = ${aliasOf(i)}.${from.quoted}`,
    ),
  ];
}

/** The alias of the table that so many steps lead to. */
function aliasOf(steps: number): string {
  return steps === 0 ? alias : `w${steps}`;
}

/** The SQL of gateway.token_owners: the users who are marked as owners; else all of them. */
function ownersOf(users: Table | undefined, rows: readonly SampleRow[], tenant: Tenant): SharedFile {
  const workspace = users && tenant.columnIn(users)?.quoted;
  if (users === undefined || workspace === undefined)
    return {
      sql: `select null::text as workspace_id, null::text as id, null::text as email where false`,
      open: [
        'no table of users with a column of the workspace was found, so no token can be made: show workspace_id, id and email of the users who may have tokens, such as from a join of users with their memberships.',
      ],
    };
  const email = users.columns.find(({ name }) => isNamed('email', name))?.quoted;
  const id = (idColumn(users, tenant) ?? columnOf(users, 'id'))?.quoted ?? email;
  const select = `select ${as(workspace, 'workspace_id')}, ${as(`${id}`, 'id')}, ${as(`${email}`, 'email')} from ${users.quoted}`;
  const condition = ownerCondition(users, rows);
  if (condition !== undefined) return { sql: `${select}\n  where ${condition}`, open: [] };
  return { sql: select, open: [`every user of ${users.quoted} may have tokens made: add a condition for the owners.`] };
}

/** `expression as name`, unless it is a column of that name. */
export function as(expression: string, name: string): string {
  return expression.replace(/^\w+\./, '') === name ? expression : `${expression} as ${name}`;
}

function ownerCondition({ columns }: Table, rows: readonly SampleRow[]): string | undefined {
  const flag = columns.find(({ name, type }) => isNamed('ownerFlag', name) && type === 'boolean');
  if (flag) return flag.quoted;
  const role = columns.find(({ name }) => isNamed('role', name));
  const word = role && valuesOf(rows, role.name).find((value) => isNamed('owner', value));
  return word === undefined ? undefined : `${role?.quoted} = ${literal(word)}`;
}
