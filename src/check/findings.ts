/** Row of the table: the item as the operator's guide states it, and what to do when it is not ok. */
interface FindingRow {
  readonly meaning: string;
  readonly advice: string;
}

/** The table of findings. docs/check.md is compared with it. */
export const findings = {
  environment: {
    meaning:
      'No environment name looks like a misspelt setting. The gateway ignores such a name and uses the default; `serve` warns of it on stderr',
    advice: 'Correct the name, or remove it from the environment.',
  },
  replicas: {
    meaning: '`REPLICA_URLS` is set',
    advice: 'Set REPLICA_URLS to the connection URL of at least one replica.',
  },
  codec_module: {
    meaning: '`CODEC_MODULE` can be loaded, where it is set or a codec needs it',
    advice: 'Correct CODEC_MODULE, a path relative to the working directory, or the module.',
  },
  open_points: {
    meaning: 'No description in a definition begins with `OPEN: `, the mark of a guess',
    advice: 'Look at the stored values, correct the definition where the guess is wrong, and replace the description.',
  },
  redis: {
    meaning:
      '`REDIS_URL`, where it is set: Redis answers PING, accepts the login and runs scripts that write: it is no replica',
    advice:
      'Look at host, port, password and ACL (+eval, ~gateway:*) of REDIS_URL. Until then each gateway enforces its share of the limits, and does not know the writes of the others.',
  },
  cluster: {
    meaning:
      'All servers belong to one cluster (`system_identifier`). Refused without `PRIMARY_URLS`, as the gateway cannot tell which one is right',
    advice: 'Point REPLICA_URLS and PRIMARY_URLS at servers of one cluster.',
  },
  connection: {
    meaning:
      'The server is reachable and accepts the login. A refused login is `failed`, not `refused`, while another server in the same setting is fine',
    advice:
      'Look at host, port, password, pg_hba.conf and firewall; REPLICA_URLS and PRIMARY_URLS hold the address and the login.',
  },
  encryption: {
    meaning:
      'TLS with a verified certificate, unless the server is on the same machine; a warning, and failed where TLS itself fails',
    advice:
      "Add sslmode=verify-full and sslrootcert=FILE, the CA that signed the server's certificate, to the URL, name the host as the certificate does, and set ssl = on and hostssl (pg_hba.conf) on the server.",
  },
  pooler: {
    meaning:
      'No pooler between gateway and PostgreSQL, or prepared statements survive it; a warning: `serve` then runs as with `NAMED_STATEMENTS=false`. A pooler announces another process than the one that answers',
    advice: 'Set NAMED_STATEMENTS=false, or let PgBouncer 1.21 or later have max_prepared_statements above 0.',
  },
  role_settings: {
    meaning:
      'Settings of the role: `statement_timeout`, `lock_timeout`, `idle_in_transaction_session_timeout`, `client_connection_check_interval`, `plan_cache_mode`, `synchronous_commit`; failed when requests fail or confirmed writes can be lost, else a warning. A login does not inherit the settings of its role',
    advice:
      'Run deploy/login.sql for a login that is a member, else set them with alter role, as sql/core/001_roles.sql does; per-database role settings override role settings.',
  },
  connections: {
    meaning:
      'The role, the database and `max_connections` (less the reserved ones) allow the connections of all pools and probes × `WEB_CONCURRENCY` × `INSTANCES` (where `REDIS_URL` is set); not asked through a pooler',
    advice:
      'Raise the limit, lower the pools (SHORT_CONNECTIONS, LONG_CONNECTIONS, PRIMARY_CONNECTIONS), or use a pooler.',
  },
  recovery: {
    meaning:
      'A replica is in recovery and read-only, a primary is neither. No fault of one server while another in the same setting has the state wanted',
    advice: 'Point REPLICA_URLS at replicas and PRIMARY_URLS at the primary of the same cluster.',
  },
  standby: {
    meaning:
      'A replica replays (failed while replay is paused), and replay does not end statements early: `hot_standby_feedback` is on, or `max_standby_streaming_delay` is at least `STATEMENT_TIMEOUT_MS`; else a warning',
    advice: 'Run select pg_wal_replay_resume(), or set hot_standby_feedback = on on the replica.',
  },
  session: {
    meaning: '`TimeZone` UTC, `DateStyle` ISO, `bytea_output` hex, `extra_float_digits` above 0, encoding UTF8',
    advice: "Set it for the role: alter role … set timezone = 'UTC', as sql/core/001_roles.sql does.",
  },
  clock: {
    meaning: "Within two seconds of the gateway's",
    advice: 'Let NTP keep the clocks of the gateway and of the database.',
  },
  time_zone: {
    meaning: 'PostgreSQL and Node know `TIME_ZONE`',
    advice: 'Set TIME_ZONE to a name of the time zone database, such as Europe/Amsterdam.',
  },
  role: {
    meaning: 'No superuser, no attribute, membership or possession beyond the task of the role',
    advice: 'Use gateway_reader for REPLICA_URLS and gateway_writer for PRIMARY_URLS, and take from them the rest.',
  },
  privileges: {
    meaning: 'No privilege beyond those that the role needs, granted by any role, to it or to PUBLIC',
    advice: 'Revoke it, from the role or from PUBLIC.',
  },
  token_look_up: {
    meaning: '`gateway.find_token` works',
    advice: 'Run migrate, or grant EXECUTE on the function to gateway_reader.',
  },
  keyring: {
    meaning: '`DATA_KEYS` has every key in use',
    advice: 'Add the missing key to DATA_KEYS, or grant EXECUTE on gateway.key_ids() to gateway_reader.',
  },
  view: {
    meaning:
      'Every view that `migrate` makes of the definition is there, with every column in a fitting type, and owned as it must be',
    advice: 'Correct the view in the folder of views, or the definition, and run migrate --views DIR.',
  },
  migrated: {
    meaning:
      'The views are those that `migrate` made, and made of these definitions. Refused where a view of the schema `gateway` was changed since, because its wall may be gone',
    advice: 'Run migrate --views DIR with the same RESOURCES_DIR: it makes them again.',
  },
  scans: {
    meaning:
      'Every scan below a view that the roles use compares the workspace: in subqueries, joins, parts and views of writes as well, by the plan of PostgreSQL. A comparison is with the workspace of the request or with that of a row that is compared itself; a table without such a column is read by a foreign key to or from such a row',
    advice:
      'Let each subquery and join of the view compare the column of the workspace, such as h.workspace_id = w.workspace_id.',
  },
  workspaces: {
    meaning:
      '`ADMIN_URL` gives a sample of workspaces, whose records the items below read; without it, a warning. No row-level security of the app hides workspaces or users from `tokens`',
    advice: 'Give `check` the ADMIN_URL of `migrate`, run migrate, or create the policy.',
  },
  ids: {
    meaning:
      'No id repeats within a workspace: those of 250 rows of each end of the list are looked for in all rows of their workspace. A walk by cursor would lose rows with the same id, and a detail shows one of them',
    advice: 'Let the view show an id that a unique index proves, or the newest of the rows with one id alone.',
  },
  values: {
    meaning:
      '500 rows of each of two workspaces, half of each end of the list, are decoded as a list does it. Values that are stored but shown as null: a warning with the number, the reason and the first row; failed when they are more than 5 % of twenty or more values of a field; refused when they are all of ten or more',
    advice:
      'Compare DATA_KEYS with the keys of the app, and the codecs of the definition with the stored values; where JSON has no such value (NaN, infinity), let the view show another. The row named is an example.',
  },
  clear_values: {
    meaning:
      'The same rows show no changes of records without `"clean": "audit-diff"`, no image or signature without `"clean"`, no e-mail addresses, and no values that look encrypted; a warning',
    advice: 'Give the field "clean", a codec or a diff, or leave its column out of the view and the definition.',
  },
  schema: {
    meaning: 'The same rows fit the JSON Schema of the OpenAPI document',
    advice: 'Let the view give the types of the contract (docs/definitions.md), or change the definition.',
  },
  plans: {
    meaning:
      'Generic plans of every list (without filters, by each, by all), of the detail and of sync, with sequential scans and sorts switched off: those that remain outside the parts of a record have no index. A warning with the index to create: a filter of a list whose plan reads the index of the list and throws away at least half of the rows',
    advice:
      'Run migrate --indexes, or create an index that has the workspace, the filter and the order of the list; for sync the workspace and the id, or the workspace, the id of the record and the id of the part.',
  },
  sorted_lists: {
    meaning: 'Lists of rows whose workspace another table tells: no index has both the workspace and the order',
    advice: 'Where a workspace has many such rows, give the table a column of the workspace.',
  },
  write_view: {
    meaning:
      'The writer may write the fields of the write scope, and no other; the write view is filtered by workspace and owned as the view is, and the writer may select the view, for reads while replicas are behind',
    advice: 'Correct the grants, the write view, or the fields of the definition that have "write".',
  },
  writes: {
    meaning:
      'A change, its repetition and a new record with the statements of the gateway, on the primary and rolled back; the version moves with the change. Values that a constraint of the app refuses are no fault; a column that a new record leaves without a value, and that must have one, is. A warning: a reference of the record that the new one repeats is not shown, or every trial was refused',
    advice:
      'Run migrate for missing grants; let a trigger raise the version; make the write view updatable; let the rules of the app take what clients may send.',
  },
} as const satisfies Readonly<Record<string, FindingRow>>;

/** The code of an item: a key of the table. */
export type FindingCode = keyof typeof findings;
