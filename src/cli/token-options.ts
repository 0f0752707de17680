import { durationMs, UsageError } from './command.js';

const rfc3339 = /^\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2})$/;

/** The list in --scopes, each one of the scopes of the API, none twice. */
export function parseScopes(list: string, scopes: readonly string[]): string[] {
  const given = [...new Set(list.split(/[\s,]+/).filter((scope) => scope !== ''))];
  const unknown = given.filter((scope) => !scopes.includes(scope));
  if (unknown.length > 0)
    throw new UsageError(`There is no scope ${unknown.join(', ')}. Scopes: ${scopes.join(', ')}.`);
  if (given.length === 0) throw new UsageError(`--scopes is empty. Scopes: ${scopes.join(', ')}.`);
  return given;
}

/** The moment in --expires-in (90d, 12h, 30m, never) or --expires-at (RFC 3339); null for never. Default 90 days. */
export function parseExpiry(
  given: { 'expires-in'?: string | undefined; 'expires-at'?: string | undefined },
  now: Date,
): Date | null {
  const { 'expires-in': within, 'expires-at': at } = given;
  if (within !== undefined && at !== undefined) throw new UsageError('Give --expires-in or --expires-at, not both.');
  if (within === 'never') return null;
  const moment = at !== undefined ? parseMoment(at) : new Date(now.getTime() + parseDuration(within ?? '90d'));
  if (moment <= now) throw new UsageError(`--expires-at ${at} has passed.`);
  return moment;
}

/** A name by which people recognize the token. */
export function parseName(name: string): string {
  const trimmed = name.trim();
  if (trimmed === '' || trimmed.length > 100 || /\p{Cc}/u.test(trimmed)) {
    throw new UsageError('--name must be 1 to 100 characters, without control characters.');
  }
  return trimmed;
}

/** The id of a token, as `tokens list` shows it. */
export function parseTokenId(text: string | undefined): string {
  if (text === undefined) throw new UsageError('Give the id of the token; `tokens list` shows it.');
  if (/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text)) return text;
  // The text is not repeated, because it may be the token itself.
  throw new UsageError('That is not the id of a token; `tokens list` shows it.');
}

function parseDuration(text: string): number {
  const ms = durationMs(text, 'mhd');
  if (ms === null) throw new UsageError(`--expires-in must be such as 90d, 12h, 30m or never, not "${text}".`);
  return ms;
}

function parseMoment(text: string): Date {
  const moment = new Date(rfc3339.test(text) ? text.toUpperCase() : Number.NaN);
  const day = text.slice(0, 10);
  const exists = new Date(`${day}T00:00:00Z`);
  if (!Number.isNaN(moment.getTime()) && !Number.isNaN(exists.getTime()) && exists.toISOString().startsWith(day))
    return moment;
  throw new UsageError(`--expires-at must be an RFC 3339 moment such as 2027-01-31T00:00:00Z, not "${text}".`);
}
