import { urlAs } from '../../../demo/cluster/passwords.js';
import { shared } from '../workspace.js';
import { type Configurations, primaryAs, replicaAs } from './configuration.js';

const withPassword = (url: string, password: string): string => Object.assign(new URL(url), { password }).href;

/** Wrong settings, servers, logins and sessions. */
export const wrongServers: Configurations = {
  'REPLICA_URLS is not set': {
    settings: () => ({ replicaUrls: '' }),
    level: 'refused',
    code: 'replicas',
    detail: /REPLICA_URLS is not set/,
  },
  'CODEC_MODULE names no file': {
    settings: () => ({ codecModule: './nowhere.mjs' }),
    level: 'refused',
    code: 'codec_module',
    detail: /nowhere\.mjs cannot be loaded/,
  },
  'nothing listens at the address of a replica': {
    settings: () => ({ replicaUrls: 'postgres://gateway_reader@127.0.0.1:1/app' }),
    level: 'failed',
    code: 'connection',
    detail: /cannot be reached now: .*ECONNREFUSED/,
  },
  'the server offers no TLS': {
    settings: (database) => ({ replicaUrls: `${database.settings.replicaUrls}?sslmode=verify-full` }),
    level: 'failed',
    code: 'encryption',
    detail: /^TLS fails: The server does not support SSL connections[.]$/,
    also: ['connection'],
  },
  'the password is wrong': {
    settings: (database) => ({ replicaUrls: withPassword(database.settings.replicaUrls, 'wrong') }),
    level: 'refused',
    code: 'connection',
    detail: /password authentication failed.*28P01/,
  },
  'there is no such database': {
    settings: () => ({ replicaUrls: urlAs(shared.replicas[0] as string, 'gateway_reader', 'nowhere') }),
    level: 'refused',
    code: 'connection',
    detail: /database "nowhere" does not exist/,
  },
  'REPLICA_URLS names the primary': {
    settings: (database) => ({ replicaUrls: primaryAs('gateway_reader', database) }),
    level: 'refused',
    code: 'recovery',
    detail: /this is no replica but a primary/,
  },
  'PRIMARY_URLS names a replica': {
    settings: (database) => ({ primaryUrls: replicaAs('gateway_writer', database) }),
    level: 'failed',
    code: 'recovery',
    detail: /writes will be answered 503/,
  },
  'the login is a superuser': {
    settings: (database) => ({ replicaUrls: replicaAs('postgres', database) }),
    level: 'refused',
    code: 'role',
    detail: /it has SUPERUSER/,
    also: ['session', 'role_settings'],
  },
  'the roles can create temporary objects': {
    change: ({ name }) => `grant temporary on database ${name} to public`,
    undo: ({ name }) => `revoke temporary on database ${name} from public`,
    level: 'refused',
    code: 'role',
    detail: /revoke TEMPORARY on the database from PUBLIC/,
  },
  'the reader may read a table of the app': {
    change: () => 'grant usage on schema app to gateway_reader; grant select on app.users to gateway_reader',
    undo: () => 'revoke usage on schema app from gateway_reader; revoke select on app.users from gateway_reader',
    level: 'refused',
    code: 'privileges',
    detail: /app\.users/,
  },
  'a function costs less than a comparison': {
    change: () => `create function public.cheap(text) returns boolean language sql cost 0.1 as 'select true'`,
    undo: () => 'drop function public.cheap',
    level: 'refused',
    code: 'privileges',
    detail: /may execute the function cheap\(text\), whose cost of 0.1 is below 1/,
  },
  'sessions print times of another zone': {
    change: ({ name }) => `alter role gateway_reader in database ${name} set timezone = 'Europe/Amsterdam'`,
    undo: ({ name }) => `alter role gateway_reader in database ${name} reset timezone`,
    level: 'refused',
    code: 'session',
    detail: /TimeZone is Europe\/Amsterdam, not UTC/,
  },
  'sessions print bytea as escapes': {
    change: ({ name }) => `alter role gateway_reader in database ${name} set bytea_output = 'escape'`,
    undo: ({ name }) => `alter role gateway_reader in database ${name} reset bytea_output`,
    level: 'refused',
    code: 'session',
    detail: /bytea_output is escape, not hex/,
  },
  'sessions begin serializable transactions, which a replica does not take': {
    change: ({ name }) =>
      `alter role gateway_reader in database ${name} set default_transaction_isolation = serializable`,
    undo: ({ name }) => `alter role gateway_reader in database ${name} reset default_transaction_isolation`,
    level: 'refused',
    code: 'session',
    detail: /default_transaction_isolation does not fit: cannot use serializable mode in a hot standby/,
  },
  'TIME_ZONE is unknown': {
    settings: () => ({ timeZone: 'Europe/Nowhere' }),
    level: 'refused',
    code: 'time_zone',
    detail: /no time zone Europe\/Nowhere/,
  },
  'TIME_ZONE is of the form of POSIX, which PostgreSQL takes under any name': {
    settings: () => ({ timeZone: 'Foo1' }),
    level: 'refused',
    code: 'time_zone',
    detail: /no time zone Foo1/,
  },
  'tokens cannot be looked up': {
    change: () => 'revoke execute on function gateway.find_token(bytea) from gateway_reader',
    undo: () => 'grant execute on function gateway.find_token(bytea) to gateway_reader',
    level: 'refused',
    code: 'token_look_up',
    detail: /permission denied for function find_token/,
  },
  'DATA_KEYS lacks a key in use': {
    settings: () => ({ dataKeys: JSON.stringify({ k1: shared.keys.k1 }) }),
    level: 'refused',
    code: 'keyring',
    detail: /DATA_KEYS lacks k2, k3/,
    also: ['values'],
  },
  'DATA_KEYS has other keys under the ids of those in use': {
    settings: () => ({ dataKeys: JSON.stringify({ k1: shared.keys.k2, k2: shared.keys.k3, k3: shared.keys.k1 }) }),
    level: 'refused',
    code: 'values',
    detail:
      /[/]naam: (\d+) of \1 values are stored but shown as null \(bad_tag(, bad_format)?\), such as in row [-0-9a-f]{36}/,
    thorough: true,
  },
  'the clock of the gateway is off': {
    clockMs: 5000,
    level: 'failed',
    code: 'clock',
    detail: /-\d+ ms from the gateway's; expiry of tokens is judged/,
  },
  'the role ends statements early': {
    change: ({ name }) => `alter role gateway_reader in database ${name} set statement_timeout = '9s'`,
    undo: ({ name }) => `alter role gateway_reader in database ${name} reset statement_timeout`,
    level: 'failed',
    code: 'role_settings',
    detail: /statement_timeout is 9000: it ends statements before STATEMENT_TIMEOUT_MS does/,
  },
  'the role ends every statement': {
    change: ({ name }) => `alter role gateway_reader in database ${name} set statement_timeout = '1ms'`,
    undo: ({ name }) => `alter role gateway_reader in database ${name} reset statement_timeout`,
    level: 'failed',
    code: 'role_settings',
    detail: /statement_timeout of the role ends the statements of the check/,
  },
  'writes are confirmed before they are on disk': {
    change: ({ name }) => `alter role gateway_writer in database ${name} set synchronous_commit = off`,
    undo: ({ name }) => `alter role gateway_writer in database ${name} reset synchronous_commit`,
    level: 'failed',
    code: 'role_settings',
    detail: /synchronous_commit is off: a crash of the primary loses writes that were confirmed/,
  },
  'the settings of the role were never made': {
    change: ({ name }) =>
      ['lock_timeout', 'idle_in_transaction_session_timeout', 'client_connection_check_interval']
        .map((setting) => `alter role gateway_writer in database ${name} set ${setting} = 0`)
        .join('; '),
    undo: ({ name }) => `alter role gateway_writer in database ${name} reset all`,
    level: 'warning',
    code: 'role_settings',
    detail: /lock_timeout is 0: .*idle_in_transaction_session_timeout is 0: .*client_connection_check_interval is 0: /,
  },
  'plans may change from hour to hour': {
    change: ({ name }) => `alter role gateway_reader in database ${name} set plan_cache_mode = auto`,
    undo: ({ name }) => `alter role gateway_reader in database ${name} reset plan_cache_mode`,
    level: 'warning',
    code: 'role_settings',
    detail: /plan_cache_mode is auto/,
  },
  'role and server allow fewer connections than the pools need': {
    settings: () => ({ shortConnections: 100, webConcurrency: 3 }),
    change: () => 'alter role gateway_reader connection limit 290',
    undo: () => 'alter role gateway_reader connection limit -1',
    level: 'failed',
    code: 'connections',
    detail:
      /^315 are needed, 104 of the pools and a probe, by 3 workers and 1 machines; the role allows 290, the server allows 297\.$/,
  },
  'nothing listens at the address of Redis': {
    settings: () => ({ redisUrl: 'redis://127.0.0.1:1' }),
    level: 'failed',
    code: 'redis',
    detail: /ECONNREFUSED/,
    thorough: true,
  },
};
