/** The servers that a login leads to: gateway_reader reads on replicas, gateway_writer writes on the primary. */
export type LoginKind = 'replica' | 'primary';

/** `serve` starts with a session that has another value, unless the level is refused. */
type Level = 'refused' | 'failed' | 'warning';

/**
 * The settings that the gateway relies on, in the units of pg_settings: a role can change its own, so each login sends them. null: that kind of
 * login needs none. The roles have the same (sql/core/001_roles.sql), for poolers that pass none on; the reasons are there.
 */
const table: readonly (readonly [name: string, reader: string | null, writer: string | null, level: Level])[] = [
  ['TimeZone', 'UTC', 'UTC', 'refused'],
  ['DateStyle', 'ISO, YMD', 'ISO, YMD', 'refused'],
  ['IntervalStyle', 'postgres', 'postgres', 'warning'],
  ['bytea_output', 'hex', 'hex', 'refused'],
  ['extra_float_digits', '1', '1', 'refused'],
  ['standard_conforming_strings', 'on', 'on', 'refused'],
  ['search_path', 'public', 'public', 'warning'],
  ['row_security', 'on', 'on', 'failed'],
  ['default_transaction_isolation', 'read committed', 'read committed', 'failed'],
  ['default_transaction_deferrable', 'off', 'off', 'warning'],
  ['default_transaction_read_only', 'on', null, 'warning'],
  ['plan_cache_mode', 'force_generic_plan', null, 'warning'],
  ['random_page_cost', '1.1', null, 'warning'],
  ['enable_indexscan', 'on', 'on', 'warning'],
  ['enable_indexonlyscan', 'on', 'on', 'warning'],
  ['enable_bitmapscan', 'on', 'on', 'warning'],
  ['enable_nestloop', 'on', 'on', 'warning'],
  ['jit', 'off', null, 'warning'],
  ['max_parallel_workers_per_gather', '0', null, 'warning'],
  ['statement_timeout', '60000', '10000', 'failed'],
  ['lock_timeout', '1000', '2000', 'warning'],
  ['idle_in_transaction_session_timeout', '10000', '5000', 'warning'],
  ['idle_session_timeout', '0', '0', 'warning'],
  ['client_connection_check_interval', '1000', '1000', 'warning'],
  ['synchronous_commit', null, 'on', 'failed'],
];

/** A setting of a session, and what another value means. */
export interface SessionSetting {
  readonly name: string;
  readonly value: string;
  readonly level: Level;
}

/** The settings of a kind of login; statements have at least the time that the gateway gives them. */
export function sessionSettings(
  kind: LoginKind,
  bounds: { readonly statementTimeoutMs: number; readonly writeTimeoutMs: number },
): SessionSetting[] {
  const statementMs = 2 * (kind === 'replica' ? bounds.statementTimeoutMs : bounds.writeTimeoutMs);
  return table.flatMap(([name, reader, writer, level]) => {
    const value = kind === 'replica' ? reader : writer;
    if (value === null) return [];
    return [
      { name, level, value: name === 'statement_timeout' ? String(Math.max(statementMs, Number(value))) : value },
    ];
  });
}

/** Settings that servers before PostgreSQL 17 do not know. */
const newer: readonly Pick<SessionSetting, 'name' | 'value'>[] = [{ name: 'transaction_timeout', value: '0' }];

/** Settings that poolers track and pass on by themselves. */
const tracked = ['TimeZone', 'DateStyle', 'standard_conforming_strings'];

/** Parameters of the startup message (PostgreSQL 55.7). */
export type Startup = Readonly<Record<string, string>>;

/**
 * The startup parameters to try, one after the other: all; without those that an older server refuses; without all that a pooler does not
 * pass on.
 */
export function startupsOf(settings: readonly SessionSetting[]): readonly [Startup, Startup, Startup] {
  const named = Object.fromEntries(
    settings.flatMap(({ name, value }) => (tracked.includes(name) ? [[name, value] as const] : [])),
  );
  const options = (given: readonly Pick<SessionSetting, 'name' | 'value'>[]): string =>
    given.map(({ name, value }) => `-c ${name}=${value.replace(/[\\ ]/g, '\\$&')}`).join(' ');
  const own = settings.filter(({ name }) => !tracked.includes(name));
  return [{ ...named, options: options([...own, ...newer]) }, { ...named, options: options(own) }, named];
}

/** Whether a server refused a startup parameter, by SQLSTATE: PostgreSQL knows no such setting, or a pooler passes none on. */
export function isRefusedStartup(error: unknown): boolean {
  const { code, severity } = error as { code?: unknown; severity?: unknown };
  return severity !== undefined && (code === '42704' || code === '08P01');
}
