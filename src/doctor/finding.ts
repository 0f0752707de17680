import { projectText } from '../base/paths.js';

/** docs/reference/check.md has the meaning of each code. */
export const advice = {
  environment: 'Correct the name, or remove it from the environment.',
  replicas: 'Set REPLICA_URLS to the connection URL of at least one replica.',
  codec_module: 'Correct CODEC_MODULE, a path relative to the working directory, or the module.',
  open_points:
    'Compare the guess with the stored values, correct the definition if it is wrong, and replace the description.',
  redis:
    'Correct host, port, password or ACL (+eval, ~gateway:*) of REDIS_URL. Until then each gateway enforces its share of the limits, and does not know the writes of the other gateways.',
  cluster: 'Point REPLICA_URLS and PRIMARY_URLS at servers of one cluster.',
  connection:
    'Check host, port and password in REPLICA_URLS and PRIMARY_URLS, then pg_hba.conf and the firewall. For a login that a pooler refuses (08P01), change the password in PostgreSQL, then in userlist.txt of PgBouncer with RELOAD there, then in the URLS.',
  encryption:
    "Add sslmode=verify-full and sslrootcert=FILE, the CA that signed the server's certificate, to the URL, name the host as the certificate does, and set ssl = on and hostssl (pg_hba.conf) on the server.",
  pooler: 'Set NAMED_STATEMENTS=false, or use PgBouncer 1.21 or later with max_prepared_statements above 0.',
  role_settings:
    'Reset the settings with alter role, also the settings of the role in this database. Behind a pooler set the settings of sql/core/001_roles.sql, by alter role or connect_query (deploy/pgbouncer).',
  connections:
    'Raise the limit, lower the pools (SHORT_CONNECTIONS, LONG_CONNECTIONS, PRIMARY_CONNECTIONS), or use a pooler.',
  recovery: 'Point REPLICA_URLS at replicas and PRIMARY_URLS at the primary of the same cluster.',
  standby: 'Run select pg_wal_replay_resume(), or set hot_standby_feedback = on on the replica.',
  session:
    'Behind a pooler reset it for the role, such as by alter role … reset bytea_output; another encoding needs a new database.',
  collations:
    'Install the same versions of ICU and libc on all servers. After a change REINDEX what the collation orders, then ALTER DATABASE or ALTER COLLATION … REFRESH VERSION.',
  clock: 'Synchronise the clocks of the gateway and of the database with NTP.',
  time_zone: 'Set TIME_ZONE to a name of the time zone database, such as Europe/Amsterdam.',
  role: 'Use gateway_reader for REPLICA_URLS and gateway_writer for PRIMARY_URLS, and revoke everything else from them.',
  privileges: 'Revoke it, from the role or from PUBLIC.',
  wall_key:
    'Give `migrate`, `serve` and `check` the same WALL_KEY, the base64 of 32 random bytes, as `openssl rand -base64 32` prints it.',
  token_look_up: 'Run migrate --repair, which grants EXECUTE on the functions of the gateway again.',
  keyring:
    'Add the missing key to DATA_KEYS, or the key with which the app sealed the values, or grant EXECUTE on gateway.key_ids() to gateway_reader.',
  schema_usage: 'Run migrate --repair, which grants USAGE on the schema gateway again.',
  view: 'Correct the view in the folder of views, or the definition, and run migrate --views DIR.',
  dropped: 'Run views --create --views DIR when the migrations of the app are done, or migrate --views DIR.',
  migrated:
    'Write changed names into the files of the views; then run migrate --views DIR with the same RESOURCES_DIR, which makes the views again.',
  scans:
    'Compare the column of the workspace in each subquery and join of the view, for example h.workspace_id = w.workspace_id.',
  workspaces: 'Give `check` the ADMIN_URL of `migrate`, run migrate, or create the policy.',
  contents:
    'Remove the field from view and definition, or show only the harmless part in the view. If addresses are meant, give the field a name that says so, such as email.',
  references:
    'Use the workspace of the record that the row is about, not the workspace of its author. If a record can rightly be of another workspace, remove "references" from the field.',
  ids: 'Expose an id that is backed by a unique index, or show only the newest of the rows with the same id.',
  values:
    'Compare DATA_KEYS with the keys of the app, and the codecs of the definition with the stored values; if JSON has no such value (NaN, infinity), show another value in the view. The named row is an example.',
  shown:
    'List in "show" what else clients may see; the empty pointer "" is a value that is no object. Leave it as it is if clients need no more.',
  schema:
    'Cast the columns of the view to the types of the contract (docs/reference/definitions.md), or change the definition.',
  indexes:
    'Run migrate --indexes. If a table took the name of another, drop the old table first. If you dropped an index on purpose, remove its file and its row in gateway.applied_files.',
  plans:
    'Run migrate --indexes, or create an index that has the workspace, the filter and the order of the list; for sync the workspace and the id, or the workspace, the id of the record and the id of the part.',
  sorted_lists: 'If a workspace has many such rows, give the table a column of the workspace.',
  write_view: 'Correct the grants, the write view, or the fields of the definition that have "write".',
  writes:
    'Run migrate for missing grants; raise the version in a trigger; make the write view updatable; make the constraints of the app accept valid client input.',
  rows: 'Compare the conditions of the view with the rows named; docs/adopt/adapting.md shows how to read the numbers.',
  unique:
    'Add the column of the workspace to the index, or remove "write" from the field. Otherwise a workspace can learn which values another workspace has.',
} as const satisfies Readonly<Record<string, string>>;

export type FindingCode = keyof typeof advice;
/** `serve` does not start when an item is refused; `check` exits with 1 when one failed or is refused. */
export type Level = 'ok' | 'warning' | 'failed' | 'refused';

export interface Finding {
  readonly level: Level;
  readonly code: FindingCode;
  /** It reads "replica 1 (10.0.0.5:5432/workspace)", or "settings". */
  readonly where: string;
  /** A view, role or resource; it is empty when there is but one. */
  readonly object: string;
  /** It holds no secrets and no values of customers. */
  readonly detail: string;
  readonly advice: string;
}

/** `advice` replaces the code's when the cause is known better. */
export type Item = Omit<Finding, 'where' | 'advice'> & { readonly advice?: string | null | undefined };

export function findingAt(where: string, item: Item): Finding {
  return { ...item, where, advice: item.level === 'ok' ? '' : (item.advice ?? advice[item.code]) };
}

/** Writes "view gateway.klanten". */
export function titleOf({ code, object }: Item): string {
  return `${code.replaceAll('_', ' ')} ${object}`.trim();
}

/** Puts all faults in one sentence, or says ok. */
export function verdict(
  code: FindingCode,
  faults: readonly string[],
  whenOk = '',
  object = '',
  whenNot: Level = 'refused',
): Item {
  if (faults.length === 0) return { level: 'ok', code, object, detail: whenOk };
  return { level: whenNot, code, object, detail: `${faults.join('; ')}.` };
}

/** The fault passes, so `serve` starts. */
export function failure(code: FindingCode, detail: string, object = ''): Item {
  return { level: 'failed', code, object, detail };
}

export function warning(code: FindingCode, detail: string, object = ''): Item {
  return { level: 'warning', code, object, detail };
}

export function faultIf(condition: boolean, fault: string): string[] {
  return condition ? [fault] : [];
}

export function withFile(faults: readonly string[], { file }: { readonly file: string }): readonly string[] {
  return faults.length === 0 ? faults : [...faults, `the definition is ${file}`];
}

export function checkSql(name: string): string {
  return projectText(`sql/check/${name}.sql`);
}
