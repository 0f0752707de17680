import type { Sql } from './world.js';

/** Tables that no request may change, and the columns of installations that none may. */
const untouchable: readonly (readonly [table: string, row: string])[] = [
  ...['workspaces', 'users', 'api_tokens', 'klanten', 'werkbonnen', 'werkbon_handelingen', 'werkbon_uren'].map(
    (table) => [table, 't::text'] as const,
  ),
  [
    'installaties',
    'concat_ws(chr(31), t.id, t.workspace_id, t.koudemiddel, t.koudemiddel_gwp, t.vulling_kg, t.interne_notities, t.lmra_verplicht, t.created_at)',
  ],
  ['logboeken', 't::text'],
];

/** Rows of the database that writes through the API do not change; `before` limits them to rows that existed then. */
export async function untouched(sql: Sql, before: Date): Promise<string[]> {
  const digests: string[] = [];
  for (const [table, row] of untouchable) {
    const since = { installaties: 'where t.created_at <= $1', logboeken: 'where t.tijdstip <= $1' }[table] ?? '';
    const [digest] = await sql<{ rows: string; sum: string }>(
      `select count(*) as rows, coalesce(sum(hashtextextended(${row}, 0)::numeric), 0) as sum from app.${table} t ${since}`,
      since === '' ? [] : [before],
    );
    digests.push(`${table}: ${digest?.rows} rows, ${digest?.sum}`);
  }
  return digests;
}

/** Everything about the written installations that does not agree with the audit log or with the tenant wall. */
export async function disagreements(sql: Sql): Promise<string[]> {
  const found: string[] = [];
  for (const [what, text] of checks) {
    const rows = await sql<Record<string, unknown>>(text);
    if (rows.length > 0) found.push(`${rows.length} ${what}, such as ${JSON.stringify(rows[0]).slice(0, 300)}`);
  }
  return found;
}

const checks: readonly (readonly [what: string, text: string])[] = [
  [
    'installations whose version is not that of their audit entries',
    `select i.id, i.version, a.changed, a.created
     from app.installaties i
     left join (select entiteit_id, count(*) filter (where actie = 'gewijzigd') as changed,
                  count(*) filter (where actie = 'aangemaakt') as created
                from app.logboeken where entiteit = 'installatie' and actor_type = 'token' group by 1) a
       on a.entiteit_id = i.id::text
     where i.version <> 1 + coalesce(a.changed, 0) or coalesce(a.created, 0) <> (i.koudemiddel is null)::int`,
  ],
  [
    'audit entries of a token that are of another workspace than the token or the installation',
    `select l.id from app.logboeken l
     left join app.api_tokens t on t.id::text = l.actor_id left join app.installaties i on i.id::text = l.entiteit_id
     where l.actor_type = 'token' and (t.workspace_id is distinct from l.workspace_id or i.workspace_id is distinct from l.workspace_id)`,
  ],
  [
    'stored outcomes without a status, or of another workspace than their token or record',
    `select k.key from gateway.idempotency k
     join app.api_tokens t on t.id = k.token_id left join app.installaties i on i.id::text = k.record_id
     where k.status is null or t.workspace_id::text <> k.workspace_id or i.workspace_id::text is distinct from k.workspace_id`,
  ],
  [
    'writes that were stored without an audit entry, or the other way round',
    `select * from (select count(*) filter (where status = 201) as stored from gateway.idempotency) k,
       (select count(*) as audited from app.logboeken where actor_type = 'token' and actie = 'aangemaakt') a
     where stored <> audited`,
  ],
];
