import { readProject } from '../../base/paths.js';
import { isNamed } from '../../base/words.js';
import { preset } from './columns/columns.js';
import type { ViewColumn } from './columns/fields.js';
import { describeGone, listPresentConditions } from './hiding/marks.js';
import type { Subject, Survey } from './schema.js';
import { composePolicies, composeWhere, type DraftFile, nameAs, type Points, quoteLiteral } from './sql.js';
import { composeOwnersSql } from './tables/owners.js';

/** Drafts tokens.sql: workspaces and owners are the app's. */
export function makeTokensFile(surveyed: Survey): DraftFile {
  const { tenant, users, subjects } = surveyed;
  const { root, rootId, isSure, reason } = tenant;
  const label = root?.columns.find(({ name }) => isNamed('label', name))?.quoted;
  const id = rootId?.quoted;
  const small = subjects.filter(({ steps }) => steps.length === 0).sort((a, b) => a.table.rows - b.table.rows)[0];
  const listed = small?.tenant.quoted;
  const workspaces = root
    ? `select ${nameAs(`t.${id}`, 'id')}, ${nameAs(label ? `t.${label}` : `t.${id}::text`, 'name')} from ${root.quoted} t${composeWhere(listPresentConditions(root))}`
    : `select distinct ${listed} as id, ${listed}::text as name from ${small?.table.quoted}\n  where ${listed} is not null`;
  const owners = composeOwnersSql(surveyed);
  const open: Points = [
    surveyed.twins !== '' && surveyed.twins.trimStart(),
    !isSure && `the workspace is a guess: ${reason}.`,
    !root && 'no table lists the workspaces, so they are read from the rows of a small table: show them from a list.',
    root && !label && `no column of ${root.quoted} names a workspace, so its id does.`,
    root && describeGone('workspaces', root),
    owners.open,
    surveyed.ownerless &&
      surveyed.ownerless.rows > 0 &&
      `${surveyed.ownerless.rows} of ${surveyed.ownerless.of} workspaces have no owner who may have tokens made, such as ${surveyed.ownerless.ids.join(', ')}.`,
    users && describeGone('users', users),
  ];
  const read = [root, users].flatMap((table) => table ?? []);
  const policies = composePolicies(read, ['select']).map((line) => `\n${line}`);
  return { ...makeFile('tokens', { workspaces, owners: owners.sql, policies: policies.join('') }), open };
}

/** Fills a template of sql/adopt, whose comment stays in the file. */
function makeFile(name: string, values: Readonly<Record<string, string>>): DraftFile {
  const [, comment = '', text = ''] = /^((?:-- .*\n)+)([\s\S]*?)\n*$/.exec(readProject(`sql/adopt/${name}.sql`)) ?? [];
  const about = [...comment.matchAll(/^-- (.*)$/gm)].map(([, line]) => line as string);
  return { path: `${name}.sql`, about, sql: text.replace(/\{(\w+)\}/g, (_, key: string) => values[key] as string) };
}

/** Drafts key_ids.sql, which finds the key ids in use with one scan per table. */
export function makeKeyIdsFile(
  drafts: readonly { readonly subject: Subject; readonly columns: readonly ViewColumn[] }[],
): DraftFile {
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
    const name = quoteLiteral(quoted);
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
  return makeFile('key_ids', { grants: grants.join(''), body: quoteWithDollars(`\n    ${body}\n  `) });
}

/** Dollar quotes that the body does not hold itself. */
function quoteWithDollars(body: string): string {
  let quote = '$$';
  for (let n = 1; body.includes(quote); n++) quote = `$body${n}$`;
  return `${quote}${body}${quote}`;
}
