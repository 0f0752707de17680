import { projectText } from '../../base/paths.js';

/** By code; docs/reference/check.md has the meaning of each. */
export const advice = {
  environment: 'Correct the name, or remove it from the environment.',
  replicas: 'Set REPLICA_URLS to the connection URL of at least one replica.',
  codec_module: 'Correct CODEC_MODULE, a path relative to the working directory, or the module.',
  open_points:
    'Look at the stored values, correct the definition where the guess is wrong, and replace the description.',
  redis:
    'Look at host, port, password and ACL (+eval, ~gateway:*) of REDIS_URL. Until then each gateway enforces its share of the limits, and does not know the writes of the others.',
  cluster: 'Point REPLICA_URLS and PRIMARY_URLS at servers of one cluster.',
  connection:
    'Look at host, port, password, pg_hba.conf and firewall; REPLICA_URLS and PRIMARY_URLS hold the address and the login.',
  encryption:
    "Add sslmode=verify-full and sslrootcert=FILE, the CA that signed the server's certificate, to the URL, name the host as the certificate does, and set ssl = on and hostssl (pg_hba.conf) on the server.",
  pooler: 'Set NAMED_STATEMENTS=false, or let PgBouncer 1.21 or later have max_prepared_statements above 0.',
  role_settings:
    'Reset them with alter role, also those of the role in this database; behind a pooler set those of sql/core/001_roles.sql, by alter role or connect_query (deploy/pgbouncer).',
  connections:
    'Raise the limit, lower the pools (SHORT_CONNECTIONS, LONG_CONNECTIONS, PRIMARY_CONNECTIONS), or use a pooler.',
  recovery: 'Point REPLICA_URLS at replicas and PRIMARY_URLS at the primary of the same cluster.',
  standby: 'Run select pg_wal_replay_resume(), or set hot_standby_feedback = on on the replica.',
  session:
    'Behind a pooler reset it for the role, such as by alter role … reset bytea_output; another encoding needs a new database.',
  collations:
    'Install the same versions of ICU and libc on all servers. After a change REINDEX what the collation orders, then ALTER DATABASE or ALTER COLLATION … REFRESH VERSION.',
  clock: 'Let NTP keep the clocks of the gateway and of the database.',
  time_zone: 'Set TIME_ZONE to a name of the time zone database, such as Europe/Amsterdam.',
  role: 'Use gateway_reader for REPLICA_URLS and gateway_writer for PRIMARY_URLS, and take from them the rest.',
  privileges: 'Revoke it, from the role or from PUBLIC.',
  wall_key:
    'Give `migrate`, `serve` and `check` the same WALL_KEY, the base64 of 32 random bytes, as `openssl rand -base64 32` prints it.',
  token_look_up: 'Run migrate, or grant EXECUTE on the function to gateway_reader.',
  keyring:
    'Give DATA_KEYS the missing key, or the one with which the app sealed the values, or grant EXECUTE on gateway.key_ids() to gateway_reader.',
  schema_usage: 'Grant it: grant usage on schema gateway to gateway_reader, gateway_writer.',
  view: 'Correct the view in the folder of views, or the definition, and run migrate --views DIR.',
  migrated:
    'Write names that changed below into the files of the views; then run migrate --views DIR with the same RESOURCES_DIR, which makes them again. Functions of core: create them again as sql/core has them.',
  scans:
    'Let each subquery and join of the view compare the column of the workspace, such as h.workspace_id = w.workspace_id.',
  workspaces: 'Give `check` the ADMIN_URL of `migrate`, run migrate, or create the policy.',
  contents:
    'Remove the field from view and definition, or let the view show the harmless part; a name that speaks of contact data, such as email, says that addresses are meant.',
  references:
    'Take the workspace of the record that the row is about, not that of the person who wrote it; where a record can rightly be of another workspace, remove "references" from the field.',
  ids: 'Let the view show an id that a unique index proves, or the newest of the rows with one id alone.',
  values:
    'Compare DATA_KEYS with the keys of the app, and the codecs of the definition with the stored values; where JSON has no such value (NaN, infinity), let the view show another. The row named is an example.',
  schema: 'Let the view give the types of the contract (docs/reference/definitions.md), or change the definition.',
  indexes:
    'Run migrate --indexes; where you dropped one on purpose, remove its file and its row in gateway.applied_files.',
  plans:
    'Run migrate --indexes, or create an index that has the workspace, the filter and the order of the list; for sync the workspace and the id, or the workspace, the id of the record and the id of the part.',
  sorted_lists: 'Where a workspace has many such rows, give the table a column of the workspace.',
  write_view: 'Correct the grants, the write view, or the fields of the definition that have "write".',
  writes:
    'Run migrate for missing grants; let a trigger raise the version; make the write view updatable; let the rules of the app take what clients may send.',
  unique:
    'Add the column of the workspace to the index, or take "write" from the field, where no workspace should learn of the values of another.',
} as const satisfies Readonly<Record<string, string>>;

export type FindingCode = keyof typeof advice;
/** `serve` does not start when an item is refused; `check` exits with 1 when one failed or is refused. */
export type Level = 'ok' | 'warning' | 'failed' | 'refused';

export interface Finding {
  readonly level: Level;
  readonly code: FindingCode;
  /** Such as "replica 1 (10.0.0.5:5432/workspace)", or "settings". */
  readonly where: string;
  /** View, role or resource; empty when there is but one. */
  readonly object: string;
  /** Without secrets and values of customers. */
  readonly detail: string;
  readonly advice: string;
}

/** `advice`: when the cause is known better than by the code. */
export type Item = Omit<Finding, 'where' | 'advice'> & { readonly advice?: string | null | undefined };

export function findingAt(where: string, item: Item): Finding {
  return { ...item, where, advice: item.level === 'ok' ? '' : (item.advice ?? advice[item.code]) };
}

/** Such as "view gateway.klanten". */
export function titleOf({ code, object }: Item): string {
  return `${code.replaceAll('_', ' ')} ${object}`.trim();
}

/** Refused with all faults in one sentence, or ok. */
export function verdict(code: FindingCode, faults: readonly string[], whenOk = '', object = ''): Item {
  if (faults.length === 0) return { level: 'ok', code, object, detail: whenOk };
  return { level: 'refused', code, object, detail: `${faults.join('; ')}.` };
}

/** Not ok, but passing: `serve` starts. */
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
