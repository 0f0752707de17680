import { randomUUID } from 'node:crypto';
import { parseArgs } from 'node:util';
import type pg from 'pg';
import { loadResources } from '../definition/load.js';
import type { Resource } from '../definition/resource.js';
import { newToken, tokenHash } from '../http/token-format.js';
import { meantBy } from '../nearest-name.js';
import { asAdmin } from '../postgres/admin.js';
import { loadSettings } from '../settings.js';
import { adminUrl } from './admin.js';
import { type Command, durationMs, Failure, oneLine, print, printed, printText, say, UsageError } from './command.js';

const options = {
  workspace: { type: 'string' },
  owner: { type: 'string' },
  name: { type: 'string' },
  scopes: { type: 'string' },
  'expires-in': { type: 'string' },
  json: { type: 'boolean' },
} as const;

type OptionName = keyof typeof options;
type Given = { [name in Exclude<OptionName, 'json'>]?: string } & { json?: boolean };

interface Action {
  /** Options it takes; the others are refused. */
  readonly takes: readonly OptionName[];
  readonly takesId?: boolean;
  run(given: Given, id: string | undefined): Promise<void>;
}

const actions: Readonly<Record<string, Action>> = {
  create: { takes: ['workspace', 'owner', 'name', 'scopes', 'expires-in', 'json'], run: create },
  list: { takes: ['workspace', 'json'], run: list },
  rotate: { takes: ['expires-in', 'json'], takesId: true, run: rotate },
  revoke: { takes: [], takesId: true, run: revoke },
};

/** `tokens`: manages access tokens, on the primary. */
export const tokens: Command = async ([name, ...rest]) => {
  const action = name !== undefined && Object.hasOwn(actions, name) ? actions[name] : undefined;
  if (action === undefined) {
    const needed = `tokens needs one of: ${Object.keys(actions).join(', ')}`;
    throw new UsageError(`${needed}${meantBy(name ?? '', Object.keys(actions))}`);
  }
  const { values, positionals } = parseArgs({ args: rest, options, allowPositionals: action.takesId === true });
  const extra = Object.keys(values).find((option) => !action.takes.includes(option as OptionName));
  if (extra !== undefined) throw new UsageError(`tokens ${name} does not take --${extra}.`);
  if (positionals.length > 1) throw new UsageError(`tokens ${name} takes one id.`);
  await action.run(values, positionals[0]).catch(rephrase);
  return 0;
};

async function create(given: Given): Promise<void> {
  const [workspace, owner] = [required(given, 'workspace'), required(given, 'owner')];
  const name = parseName(required(given, 'name'));
  const known = scopesOf(loadResources(loadSettings(process.env).resourcesDir));
  const scopes = parseScopes(given.scopes ?? '', known);
  const expiresAt = parseExpiry(given);
  await asAdmin(adminUrl(), async (client) => {
    const workspaceId = await findWorkspace(client, workspace);
    const user = await client.query('select gateway.find_user($1, $2) as id', [workspaceId, owner]);
    const order = { workspaceId, ownerId: user.rows[0].id as string, name, scopes, expiresAt };
    await show(await createToken(client, order), order, given.json);
  });
}

/** Replaces a token by a successor and revokes it, both or neither (one statement). */
async function rotate(given: Given, text: string | undefined): Promise<void> {
  const id = parseTokenId(text);
  const expiresAt = parseExpiry(given);
  const made = { id: randomUUID(), token: newToken() };
  const { rows } = await asAdmin(adminUrl(), (client) =>
    client.query('select * from gateway.rotate_token($1, $2, $3, $4)', [id, made.id, tokenHash(made.token), expiresAt]),
  );
  say(`Token ${id} is revoked.`);
  const { workspace_id: workspaceId, name, scopes } = rows[0];
  await show(made, { workspaceId, name, scopes, expiresAt }, given.json);
}

async function revoke(_: Given, text: string | undefined): Promise<void> {
  const id = parseTokenId(text);
  const { revokedAt, now } = await asAdmin(adminUrl(), (client) => revokeToken(client, id));
  say(now ? `Token ${id} is revoked.` : `Token ${id} was revoked before, at ${moment(revokedAt)}.`);
}

async function list(given: Given): Promise<void> {
  const { rows } = await asAdmin(adminUrl(), async (client) => {
    const workspaceId = given.workspace === undefined ? null : await findWorkspace(client, given.workspace);
    return client.query<ListedToken>('select * from gateway.list_tokens($1)', [workspaceId]);
  });
  if (given.json) printText(JSON.stringify(rows.map(listed), null, 2));
  else table(rows);
}

/** The scopes of the API: read:<resource> for each, and write:<resource> where it can be written. */
export function scopesOf(resources: readonly Resource[]): string[] {
  return [
    ...resources.map(({ name }) => `read:${name}`),
    ...resources.filter(({ write }) => write !== undefined).map(({ name }) => `write:${name}`),
  ];
}

/** The properties of a new token. */
interface TokenOrder {
  readonly workspaceId: string;
  /** One of gateway.token_owners for that workspace; other users are refused with SQLSTATE WG003. */
  readonly ownerId: string;
  readonly name: string;
  readonly scopes: readonly string[];
  /** null: it never expires. */
  readonly expiresAt: Date | null;
}

/** A new token. `token` is the plain text, which is not stored: the database holds its hash. */
interface CreatedToken {
  readonly id: string;
  readonly token: string;
}

/** Creates a token on a connection as the admin role. */
export async function createToken(client: pg.ClientBase, order: TokenOrder): Promise<CreatedToken> {
  const made = { id: randomUUID(), token: newToken() };
  const { workspaceId, ownerId, name, scopes, expiresAt } = order;
  const values = [made.id, workspaceId, ownerId, name, tokenHash(made.token), scopes, expiresAt];
  await client.query('select gateway.create_token($1, $2, $3, $4, $5, $6, $7, null)', values);
  return made;
}

/** Revokes a token; `now` is false when it was revoked before. SQLSTATE WG004: unknown. */
export async function revokeToken(client: pg.ClientBase, id: string): Promise<{ revokedAt: Date; now: boolean }> {
  const { rows } = await client.query('select * from gateway.revoke_token($1)', [id]);
  return { revokedAt: rows[0].revoked_at, now: rows[0].revoked_now };
}

/** The id of the workspace with this id or name. SQLSTATE WG001: none, or several. */
async function findWorkspace(client: pg.ClientBase, idOrName: string): Promise<string> {
  return (await client.query('select gateway.find_workspace($1) as id', [idOrName])).rows[0].id;
}

/** Prints a plain token; no other function does. Throws Failure when stdout does not take it: it is shown at no other time. */
async function show(
  { id, token }: CreatedToken,
  { name, workspaceId, scopes, expiresAt }: Omit<TokenOrder, 'ownerId'>,
  json = false,
): Promise<void> {
  const expires = moment(expiresAt);
  if (!json)
    say(`Token ${id} "${name}" for ${scopes.join(', ')}; expires ${expires ?? 'never'}. It is shown this once:`);
  const fault = await printed(
    json ? JSON.stringify({ id, token, name, workspaceId, scopes, expiresAt: expires }) : token,
  );
  if (fault === null) return;
  throw new Failure(
    `The token could not be written to stdout (${fault}) and is lost: \`tokens rotate ${id}\` makes another in its place.`,
  );
}

/** A row of gateway.list_tokens. */
type ListedToken = Readonly<Record<string, string | readonly string[] | Date | null>>;

/** "workspace_id" → "workspaceId", and times as texts. */
function listed({ created_by: _, ...token }: ListedToken): Record<string, unknown> {
  const camelCase = (name: string): string => name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
  return Object.fromEntries(
    Object.entries(token).map(([name, value]) => [camelCase(name), value instanceof Date ? moment(value) : value]),
  );
}

const columns: readonly (readonly [heading: string, column: string, absent: string])[] = [
  ['ID', 'id', ''],
  ['STATE', 'state', ''],
  ['CREATED', 'created_at', ''],
  ['EXPIRES', 'expires_at', 'never'],
  ['LAST USED', 'last_used_at', '-'],
  ['WORKSPACE', 'workspace_name', ''],
  ['NAME', 'name', ''],
  ['SCOPES', 'scopes', ''],
];

function table(found: readonly ListedToken[]): void {
  if (found.length === 0) return say('There are no tokens.');
  const cell = (value: ListedToken[string], absent: string): string =>
    value instanceof Date ? (moment(value) as string) : value === null ? absent : [value].flat().join(' ');
  const rows = [
    columns.map(([heading]) => heading),
    ...found.map((token) => columns.map(([, column, absent]) => cell(token[column] ?? null, absent))),
  ];
  const widths = columns.map((_, i) => Math.max(...rows.map((row) => row[i]?.length ?? 0)));
  for (const row of rows)
    print(
      row
        .map((text, i) => text.padEnd(widths[i] ?? 0))
        .join('  ')
        .trimEnd(),
    );
}

function moment(date: Date | null): string | null {
  return date === null ? null : date.toISOString().replace(/\.\d+Z$/, 'Z');
}

function required(given: Given, name: 'workspace' | 'owner' | 'name'): string {
  const value = given[name];
  if (value === undefined || value === '') throw new UsageError(`tokens create needs --${name}.`);
  return value;
}

/** The list in --scopes, each one of the scopes of the API, none twice. */
function parseScopes(text: string, scopes: readonly string[]): string[] {
  const given = [...new Set(text.split(/[\s,]+/).filter((scope) => scope !== ''))];
  const unknown = given.filter((scope) => !scopes.includes(scope));
  if (unknown.length > 0)
    throw new UsageError(`There is no scope ${unknown.join(', ')}. Scopes: ${scopes.join(', ')}.`);
  if (given.length === 0) throw new UsageError(`tokens create needs --scopes, of: ${scopes.join(', ')}.`);
  return given;
}

/** The moment that --expires-in (90d, 12h, 30m, never) leads to; null for never. Default 90 days. */
function parseExpiry({ 'expires-in': within = '90d' }: Given): Date | null {
  if (within === 'never') return null;
  const ms = durationMs(within, 'mhd');
  if (ms === null) throw new UsageError(`--expires-in must be such as 90d, 12h, 30m or never, not "${within}".`);
  return new Date(Date.now() + ms);
}

/** A name by which people recognize the token. */
function parseName(name: string): string {
  const trimmed = name.trim();
  if (trimmed !== '' && trimmed.length <= 100 && !/\p{Cc}/u.test(trimmed)) return trimmed;
  throw new UsageError('--name must be 1 to 100 characters, without control characters.');
}

/** The id of a token, as `tokens list` shows it. */
function parseTokenId(text: string | undefined): string {
  if (text === undefined) throw new UsageError('Give the id of the token; `tokens list` shows it.');
  if (/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text)) return text;
  // The text is not repeated, because it may be the token itself.
  throw new UsageError('That is not the id of a token; `tokens list` shows it.');
}

/** SQLSTATE class WG: sentences written for the operator in sql/core/003_tokens.sql. */
function rephrase(error: unknown): never {
  const { code, message } = error as { code?: string; message: string };
  if (code?.startsWith('WG')) throw new Failure(oneLine(message));
  if (code === '3F000' || code === '42883' || code === '42P01')
    throw new Failure('The database lacks the functions or views for tokens: run `migrate` first.');
  throw error;
}
