import { projectText } from '../../base/paths.js';

/** The servers that a login leads to: gateway_reader reads on replicas, gateway_writer writes on the primary. */
export type LoginKind = 'replica' | 'primary';

/** A setting of a session, and the level of the finding where a session has another value. */
export interface SessionSetting {
  readonly name: string;
  readonly value: string;
  readonly level: 'refused' | 'failed' | 'warning';
}

/** Serializers rely on those that are refused; without the others requests fail, or confirmed writes are lost. */
const refused = /^(TimeZone|DateStyle|bytea_output|extra_float_digits|standard_conforming_strings)$/;
const failed = /^(row_security|default_transaction_isolation|statement_timeout|synchronous_commit)$/;

/**
 * The settings that the gateway relies on, as sql/core/001_roles.sql gives them to the roles for poolers that pass none on: a role can change
 * its own, so each login sends them. Statements have at least the time that the gateway gives them.
 */
export function sessionSettings(
  kind: LoginKind,
  bounds: { readonly statementTimeoutMs: number; readonly writeTimeoutMs: number },
): SessionSetting[] {
  const statementMs = 2 * (kind === 'replica' ? bounds.statementTimeoutMs : bounds.writeTimeoutMs);
  const rows = projectText('sql/core/001_roles.sql').matchAll(/\('(\w+)', (null|'[^']*'), (null|'[^']*')\)/g);
  return [...rows].flatMap(([, name = '', reader, writer]): SessionSetting[] => {
    const [, value] = /^'(.*)'$/.exec((kind === 'replica' ? reader : writer) as string) ?? [];
    if (value === undefined) return [];
    const level = refused.test(name) ? 'refused' : failed.test(name) ? 'failed' : 'warning';
    return [
      { name, level, value: name === 'statement_timeout' ? String(Math.max(statementMs, Number(value))) : value },
    ];
  });
}

/** Parameters of the startup message (PostgreSQL 55.7). */
export type Startup = Readonly<Record<string, string>>;

/** The startup parameters to try: all; without one that servers before PostgreSQL 17 refuse; those alone that poolers pass on. */
export function startupsOf(settings: readonly SessionSetting[]): readonly Startup[] {
  const isTracked = ({ name }: SessionSetting): boolean =>
    /^(TimeZone|DateStyle|standard_conforming_strings)$/.test(name);
  const tracked = Object.fromEntries(settings.filter(isTracked).map(({ name, value }) => [name, value]));
  const options = settings.flatMap((each) =>
    isTracked(each) ? [] : [`-c ${each.name}=${each.value.replace(/[\\ ]/g, '\\$&')}`],
  );
  const all = ['-c transaction_timeout=0', ...options];
  return [{ ...tracked, options: all.join(' ') }, { ...tracked, options: options.join(' ') }, tracked];
}

/** Whether a server refused a startup parameter, by SQLSTATE: PostgreSQL knows no such setting, or a pooler passes none on. */
export function isRefusedStartup({
  code,
  severity,
}: {
  readonly code?: unknown;
  readonly severity?: unknown;
}): boolean {
  return severity !== undefined && (code === '42704' || code === '08P01');
}
