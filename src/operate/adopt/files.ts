import { isNamed } from '../words.js';
import { preset } from './columns.js';
import type { ViewColumn } from './fields.js';
import { gonePoint, presentConditions } from './marks.js';
import { ownersSql } from './owners.js';
import type { Subject, Survey } from './schema.js';
import { as, literal, type Points, policiesSql, type SqlFile, whereOf } from './sql.js';

/** tokens.sql: workspaces and owners are the app's. */
export function tokensFile(found: Survey): SqlFile {
  const { tenant, users, subjects } = found;
  const { root, rootId, isSure, reason } = tenant;
  const label = root?.columns.find(({ name }) => isNamed('label', name))?.quoted;
  const id = rootId?.quoted;
  const small = subjects.filter(({ steps }) => steps.length === 0).sort((a, b) => a.table.rows - b.table.rows)[0];
  const listed = small?.tenant.quoted;
  const workspaces = root
    ? `select ${as(`t.${id}`, 'id')}, ${as(label ? `t.${label}` : `t.${id}::text`, 'name')} from ${root.quoted} t${whereOf(presentConditions(root))}`
    : `select distinct ${listed} as id, ${listed}::text as name from ${small?.table.quoted}\n  where ${listed} is not null`;
  const owners = ownersSql(found);
  const open: Points = [
    !isSure && `the workspace is a guess: ${reason}.`,
    !root && 'no table lists the workspaces, so they are read from the rows of a small table: show them from a list.',
    root && !label && `no column of ${root.quoted} names a workspace, so its id does.`,
    root && gonePoint('workspaces', root),
    owners.open,
    found.ownerless &&
      found.ownerless.rows > 0 &&
      `${found.ownerless.rows} of ${found.ownerless.of} workspaces have no owner who may have tokens made, such as ${found.ownerless.ids.join(', ')}.`,
    users && gonePoint('users', users),
  ];
  return {
    path: 'tokens.sql',
    about: [
      'Tokens, their workspaces and their owners, for the functions of sql/core/003_tokens.sql. No login role may read these.',
    ],
    open,
    sql: `create view gateway.api_tokens as select * from gateway.tokens;
grant select, insert, update (revoked_at) on gateway.api_tokens to gateway_owner; -- the owner of find_token and issue_token

create view gateway.workspaces as ${workspaces};
grant select (id) on gateway.workspaces to gateway_owner;

create view gateway.token_owners as ${owners.sql};
grant select (workspace_id, id) on gateway.token_owners to gateway_owner;${policiesSql(
      [root, users].flatMap((table) => table ?? []),
      ['select'],
    )
      .map((line) => `\n${line}`)
      .join('')}`,
  };
}

/** key_ids.sql: key ids in use, with one scan per table. */
export function keyIdsFile(
  drafts: readonly { readonly subject: Subject; readonly columns: readonly ViewColumn[] }[],
): SqlFile {
  const read = drafts.flatMap(({ subject, columns }) => {
    const sealed = columns.filter(({ field }) => field.codec === preset).map(({ of }) => of.quoted);
    return sealed.length === 0 ? [] : [{ quoted: subject.table.quoted, sealed }];
  });
  const grants = read.map(
    ({ quoted, sealed }) => `grant usage on schema ${/^(?:"(?:[^"]|"")*"|[^.]+)/.exec(quoted)?.[0]} to gateway_owner;
grant select (${sealed.join(', ')}) on ${quoted} to gateway_owner; -- no other column
`,
  );
  const scans = read.map(({ quoted, sealed }) => {
    const name = literal(quoted);
    return `      select v.value
      from ${quoted} s tablesample system (
          (select least(100, 100 * 20000 / greatest(sum(case when l.reltuples < 0 then pg_relation_size(l.oid) / 100 else l.reltuples end), 1))
            from pg_class l where l.relkind = 'r'
              and (l.oid = ${name}::regclass or l.oid in (select relid from pg_partition_tree(${name}::regclass)))))
        cross join lateral (values ${sealed.map((column) => `(s.${column})`).join(', ')}) v (value)`;
  });
  const body =
    scans.length === 0
      ? 'select null::text, 0::bigint, null::text[] where false'
      : `select split_part(used.value, ':', 3), count(*), (array_agg(used.value order by length(used.value) desc))[1:100] from (\n${scans.join('\n      union all\n')}\n    ) used where used.value like 'enc:v_:%' group by 1`;
  return {
    path: 'key_ids.sql',
    about: [
      'The ids of the data keys in use, over all workspaces, with the number of values seen: `check` and `serve` compare them with',
      'the keyring. SECURITY DEFINER because the wall shows no row without a workspace; all that comes out are key ids, counts and a few sealed values without their rows.',
      'Columns, prefixes and key ids must match the codecs in the definitions: change both together.',
      'Of a large table a sample of some 20,000 rows: a key that only a handful of rows use can be missed.',
    ],
    sql: `${grants.join('')}create function gateway.key_ids() returns table (key_id text, seen bigint, samples text[])
  language sql stable security definer set search_path = ''
  as ${dollarQuoted(`
    ${body}
  `)};
alter function gateway.key_ids() owner to gateway_owner;
revoke all on function gateway.key_ids() from public;
grant execute on function gateway.key_ids() to gateway_reader;`,
  };
}

/** Dollar quotes that the body does not hold itself. */
function dollarQuoted(body: string): string {
  let quote = '$$';
  for (let n = 1; body.includes(quote); n++) quote = `$body${n}$`;
  return `${quote}${body}${quote}`;
}
