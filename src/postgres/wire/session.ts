import { readProject } from '../../base/paths.js';
import { protocolViolation, undefinedObject } from '../database-errors.js';

/** gateway_reader reads on replicas, gateway_writer writes on the primary. */
export type LoginKind = 'replica' | 'primary';

/** `level` is the finding's level when a session has another value. */
export interface SessionSetting {
  readonly name: string;
  readonly value: string;
  readonly level: 'refused' | 'failed' | 'warning';
}

/** Serializers rely on the refused settings; without the failed ones requests fail, or confirmed writes are lost. */
const refused = /^(TimeZone|DateStyle|bytea_output|extra_float_digits|standard_conforming_strings)$/;
const failed = /^(row_security|default_transaction_isolation|statement_timeout|synchronous_commit)$/;

/** Reads the roles' settings, which each login sends again: a role can change them. Statements have at least the gateway's time. */
export function listSessionSettings(
  kind: LoginKind,
  bounds: { readonly statementTimeoutMs: number; readonly writeTimeoutMs: number },
): SessionSetting[] {
  const statementMs = 2 * (kind === 'replica' ? bounds.statementTimeoutMs : bounds.writeTimeoutMs);
  const rows = readProject('sql/core/001_roles.sql').matchAll(/\('(\w+)', (null|'[^']*'), (null|'[^']*')\)/g);
  return [...rows].flatMap(([, name = '', reader, writer]): SessionSetting[] => {
    const [, value] = /^'(.*)'$/.exec((kind === 'replica' ? reader : writer) as string) ?? [];
    if (value === undefined) return [];
    const level = refused.test(name) ? 'refused' : failed.test(name) ? 'failed' : 'warning';
    return [
      { name, level, value: name === 'statement_timeout' ? String(Math.max(statementMs, Number(value))) : value },
    ];
  });
}

export type Startup = Readonly<Record<string, string>>;

/** Settings that only later servers have: minor releases of 2024, and PostgreSQL 17. */
const laterOptions = ['-c restrict_nonsystem_relation_kind=', '-c transaction_timeout=0'];

/** A role may set these otherwise: then a missing library refuses the login, or the log shows MACs of failed statements. */
const fixedOptions = ['-c local_preload_libraries=', '-c log_parameter_max_length_on_error=0'];

/** Lists what each attempt of a login sends, in turn: older servers refuse later settings, and poolers pass on only some. */
export function listStartups(settings: readonly SessionSetting[]): readonly Startup[] {
  const isTracked = ({ name }: SessionSetting): boolean =>
    /^(TimeZone|DateStyle|standard_conforming_strings)$/.test(name);
  const tracked = Object.fromEntries(settings.filter(isTracked).map(({ name, value }) => [name, value]));
  const options = settings.flatMap((each) =>
    isTracked(each) ? [] : [`-c ${each.name}=${each.value.replace(/[\\ ]/g, '\\$&')}`],
  );
  options.push(...fixedOptions);
  const sent = [2, 1, 0].map((n) => ({ ...tracked, options: [...options, ...laterOptions.slice(0, n)].join(' ') }));
  return [...sent, tracked];
}

/** PostgreSQL knows no such setting, or a pooler passes none on. PgBouncer has the same code for a server that is down. */
export function isRefusedStartup({ code, severity, message }: Readonly<Record<string, unknown>>): boolean {
  const isRefused = code === protocolViolation && /parameter|option/i.test(String(message));
  return severity !== undefined && (code === undefinedObject || isRefused);
}
