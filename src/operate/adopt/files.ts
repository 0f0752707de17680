import { readProject } from '../../base/paths.js';
import { describeGone, listPresentConditions } from './columns/deletions.js';
import { isMoments, isTextual } from './columns/types.js';
import type { ViewColumn } from './definition/fields.js';
import type { AuditEntry } from './definition/write-draft.js';
import { type Column, findNamedColumn, type Subject, type Survey, type Table } from './schema.js';
import type { DraftFile, Points } from './sql.js';
import { composePolicies, composeSequenceGrant, composeWhere, nameAs, quoteLiteral, sealedCodec } from './sql.js';
import { composeOwnersSql } from './tables/owners.js';

/** Drafts tokens.sql, which reads workspaces and owners from the tables of the app. */
export function makeTokensFile(surveyed: Survey): DraftFile {
  const { tenant, users, tables } = surveyed;
  const { root, rootId, isSure, reason } = tenant;
  const label = root && findNamedColumn(root, 'label')?.quoted;
  const id = rootId?.quoted;
  // An empty table names no workspace.
  const byRows = (a: Table, b: Table): number => Number(b.rows > 0) - Number(a.rows > 0) || a.rows - b.rows;
  const small = tables.filter((table) => tenant.columnIn(table)).sort(byRows)[0];
  const listed = small && tenant.columnIn(small)?.quoted;
  const workspaces = root
    ? `select ${nameAs(`t.${id}`, 'id')}, ${nameAs(label ? `t.${label}` : `t.${id}::text`, 'name')} from ${root.quoted} t${composeWhere(listPresentConditions(root))}`
    : `select distinct ${listed} as id, ${listed}::text as name from ${small?.quoted}\n  where ${listed} is not null`;
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
  const readTables = [root ?? small, users].flatMap((table) => table ?? []);
  const policies = composePolicies(readTables, ['select']).map((line) => `\n${line}`);
  return { ...makeFile('tokens', { workspaces, owners: owners.sql, policies: policies.join('') }), open };
}

/** Fills a template of sql/adopt; its comment becomes the comment of the file. */
function makeFile(name: string, values: Readonly<Record<string, string>>): DraftFile {
  const [, comment = '', text = ''] = /^((?:-- .*\n)+)([\s\S]*?)\n*$/.exec(readProject(`sql/adopt/${name}.sql`)) ?? [];
  const about = [...comment.matchAll(/^-- (.*)$/gm)].map(([, line]) => line as string);
  return { path: `${name}.sql`, about, sql: text.replace(/\{(\w+)\}/g, (_, key: string) => values[key] as string) };
}

/** Drafts key_ids.sql, which finds the key ids in use with one scan per table. */
export function makeKeyIdsFile(
  drafts: readonly { readonly subject: Subject; readonly columns: readonly ViewColumn[] }[],
): DraftFile {
  const sealedOfTables = drafts.flatMap(({ subject, columns }) => {
    const sealed = columns.filter(({ field }) => field.codec === sealedCodec).map(({ of }) => of.quoted);
    return sealed.length === 0 ? [] : [{ quoted: subject.table.quoted, sealed }];
  });
  const grants = sealedOfTables.map(
    ({ quoted, sealed }) => `grant usage on schema ${/^(?:"(?:[^"]|"")*"|[^.]+)/.exec(quoted)?.[0]} to gateway_owner;
grant select (${sealed.join(', ')}) on ${quoted} to gateway_owner; -- no other column
`,
  );
  const scans = sealedOfTables.map(({ quoted, sealed }) => {
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

/** Chooses dollar quotes that the body does not hold itself. */
function quoteWithDollars(body: string): string {
  let quote = '$$';
  for (let n = 1; body.includes(quote); n++) quote = `$body${n}$`;
  return `${quote}${body}${quote}`;
}

// The words must match as a whole: a stored sentence must get neither into a file nor into other workspaces.
const createdWords = /^(created?|insert|inserted|add|added|new|aangemaakt|toegevoegd)$/i;
const changedWords = /^(updated?|changed?|edit|edited|modify|modified|gewijzigd|bijgewerkt)$/i;
const logView = 'records.logboeken_write';
const momentNow = `to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`;

/** Undefined: the gateway cannot write the app's log, or there is none. */
export function planLogWrite({ subjects }: Survey): { audit: AuditEntry; file: DraftFile } | undefined {
  const subject = subjects.find(({ log, steps }) => log?.shape !== undefined && steps.length === 0);
  const log = subject?.log;
  if (subject === undefined || log === undefined) return undefined;
  const { table, tenant, id } = subject;
  const type = findNamedColumn(table, 'actorType', isTextual);
  const actor = findNamedColumn(table, 'actorId', isTextual);
  if (type === undefined || actor === undefined) return undefined;
  const entry: readonly (readonly [Column, string])[] = [
    [tenant, 'workspace_id'],
    [log.entity, 'entity'],
    [log.entityId, 'entity_id'],
    [log.action, 'action'],
    [type, 'actor_type'],
    [actor, 'actor_id'],
    [log.diff, 'changes'],
  ];
  const givenColumns = new Set([...entry.map(([column]) => column), id]);
  const others = table.columns.filter((column) => column.notNull && !column.isMade && !givenColumns.has(column));
  const moment = others.find((column) => isTextual(column) && isMoments(column.values));
  if (!id.isMade || others.some((column) => column !== moment)) return undefined;
  const items = [...entry.map(([{ quoted }, name]) => nameAs(quoted, name)), ...(moment ? [moment.quoted] : [])];
  const words = log.action.values;
  return {
    audit: {
      created: words.find((word) => createdWords.test(word)) ?? 'create',
      changed: words.find((word) => changedWords.test(word)) ?? 'update',
      actorType: 'api_token',
      view: logView,
    },
    file: {
      path: 'logboeken_write.sql',
      about: ["The app's own audit log: entries are added, never changed and never read here."],
      sql: [
        ...(id.sequence ? [composeSequenceGrant(id.sequence)] : []),
        `create view ${logView} as\n  select ${items.join(', ')}\n  from ${table.quoted};`,
        ...composePolicies([table], ['insert']),
        ...(moment ? [`alter view ${logView} alter column ${moment.quoted}\n  set default ${momentNow};`] : []),
      ].join('\n'),
    },
  };
}
