import type { Draft } from './draft.js';
import { isNamed } from './names.js';
import { dollarQuoted, literal, openLines } from './sql-text.js';
import type { Survey } from './survey.js';
import { as, ownersOf } from './users.js';

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
      : `select ${as(id, 'id')}, ${as(label ?? `${id}::text`, 'name')} from ${tenant.root.quoted}`;
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
