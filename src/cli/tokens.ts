import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import Cursor from 'pg-cursor';
import { getOwn, splitList } from '../base/members.js';
import { suggest } from '../base/nearest-name.js';
import { runAsAdmin } from '../postgres/admin.js';
import { fieldTypes } from '../resource/definition/field-types.js';
import { loadResources } from '../resource/definition/load.js';
import type { Resource } from '../resource/definition/resource.js';
import { hashToken, makeToken } from '../serve/http/token-format.js';
import {
  type Command,
  Failure,
  foldToOneLine,
  makeCommand,
  makeOptions,
  parseWholeNumber,
  printError,
  printLine,
  printTable,
  printText,
  tryPrintLine,
  UsageError,
} from './command.js';
import { readAdminUrl, readSettingsOfApp } from './required-settings.js';

const json = { type: 'boolean' } as const;
const create = makeCommand(
  { ...makeOptions('string', 'workspace', 'owner', 'name', 'scopes', 'expires-in', 'limit'), json },
  async (options) => {
    const [workspace = '', owner, name = ''] = (['workspace', 'owner', 'name'] as const).map((option) => {
      if (options[option]) return options[option];
      throw new UsageError(`tokens create needs --${option}.`);
    });
    const trimmed = name.trim();
    if (trimmed === '' || trimmed.length > 100 || /\p{Cc}/u.test(trimmed))
      throw new UsageError('--name must be 1 to 100 characters, without control characters.');
    const scopes = parseScopes(options.scopes ?? '', listScopes(loadResources(readSettingsOfApp().resourcesDir)));
    const expiresAt = parseExpiry(options['expires-in']);
    const { limit } = options;
    const requestsPerMinute = limit === undefined ? null : parseWholeNumber('--limit', limit, 1, 100_000);
    await runAsAdmin(readAdminUrl(), async (client) => {
      const workspaceId = await findWorkspace(client, workspace);
      const user = await client.query('select gateway.find_user($1, $2) as id', [workspaceId, owner]);
      const ownerId: string = user.rows[0].id;
      const order = { workspaceId, ownerId, name: trimmed, scopes, expiresAt, requestsPerMinute };
      await printToken(await createToken(client, order), order, options.json);
    });
  },
);

/** Creates a successor and revokes the token, in one statement. */
const rotate = makeCommand(
  { 'expires-in': { type: 'string' }, json },
  async (options, words) => {
    const id = parseTokenId(words);
    const expiresAt = parseExpiry(options['expires-in']);
    const successor = { id: randomUUID(), token: makeToken() };
    const values = [id, successor.id, hashToken(successor.token), expiresAt];
    const { rows } = await runAsAdmin(readAdminUrl(), (client) =>
      client.query('select * from gateway.rotate_token($1, $2, $3, $4)', values),
    );
    printError(`Token ${id} is revoked.`);
    const { workspace_id: workspaceId, name, scopes, requests_per_minute: requestsPerMinute } = rows[0];
    await printToken(successor, { workspaceId, name, scopes, expiresAt, requestsPerMinute }, options.json);
  },
  true,
);

const revoke = makeCommand(
  {},
  async (_, words) => {
    const id = parseTokenId(words);
    const { revokedAt, isNew } = await runAsAdmin(readAdminUrl(), (client) => revokeToken(client, id));
    printError(isNew ? `Token ${id} is revoked.` : `Token ${id} was revoked before, at ${formatMoment(revokedAt)}.`);
  },
  true,
);

/** Reads in batches, because an operator can have more tokens than fit in memory. */
const list = makeCommand({ workspace: { type: 'string' }, json }, (options) =>
  runAsAdmin(readAdminUrl(), async (client) => {
    const workspaceId = options.workspace === undefined ? null : await findWorkspace(client, options.workspace);
    const cursor = client.query(new Cursor<ListedToken>(listSql, [workspaceId]));
    const widths: number[] = [];
    let opening = '[';
    for (let rows = await cursor.read(1000); rows.length > 0; rows = await cursor.read(1000)) {
      const headings = widths.length === 0 ? [Object.keys(columnNames)] : [];
      if (options.json) printText(opening + JSON.stringify(rows, null, 2).slice(1, -2));
      else printTable([...headings, ...rows.map(listTokenCells)], widths);
      opening = ',';
    }
    if (options.json) printText(opening === '[' ? '[]' : ']');
    else if (opening === '[') printError('There are no tokens.');
  }),
);

const prune = makeCommand({ 'expired-before': { type: 'string' } }, async ({ 'expired-before': day = '' }) => {
  requireDay('expired-before', day);
  const { rows } = await runAsAdmin(readAdminUrl(), (client) => client.query(pruneSql, [day]));
  printLine(`${rows[0].count} expired tokens are deleted.`);
});

const actions: Readonly<Record<string, typeof rotate>> = { create, list, rotate, revoke, prune };

export const runTokens: Command = async ([name = '', ...options]) => {
  const action = getOwn(actions, name);
  if (action === undefined) {
    const needed = `tokens needs one of: ${Object.keys(actions).join(', ')}`;
    throw new UsageError(`${needed}${suggest(name, Object.keys(actions))}`);
  }
  await action(options).catch(rephrase);
  return 0;
};

export function listScopes(resources: readonly Resource[]): string[] {
  return [
    ...resources.map(({ name }) => `read:${name}`),
    ...resources.filter(({ write }) => write !== undefined).map(({ name }) => `write:${name}`),
  ];
}

interface TokenOrder {
  readonly workspaceId: string;
  /** An owner in gateway.token_owners of the workspace; otherwise SQLSTATE WG003 is raised. */
  readonly ownerId: string;
  readonly name: string;
  readonly scopes: readonly string[];
  readonly expiresAt: Date | null;
  /** Null means the default of the gateways. */
  readonly requestsPerMinute?: number | null;
}

/** `token` is the plain text, of which the database holds only the hash. */
interface CreatedToken {
  readonly id: string;
  readonly token: string;
}

export async function createToken(client: pg.ClientBase, order: TokenOrder): Promise<CreatedToken> {
  const { workspaceId, ownerId, name, scopes, expiresAt, requestsPerMinute = null } = order;
  const [id, token] = [randomUUID(), makeToken()];
  const values = [id, workspaceId, ownerId, name, hashToken(token), scopes, expiresAt, requestsPerMinute];
  await client.query('select gateway.create_token($1, $2, $3, $4, $5, $6, $7, null, $8)', values);
  return { id, token };
}

/** `isNew` is false if the token was revoked before. Raises SQLSTATE WG004 for an unknown id. */
export async function revokeToken(client: pg.ClientBase, id: string): Promise<{ revokedAt: Date; isNew: boolean }> {
  const { rows } = await client.query('select * from gateway.revoke_token($1)', [id]);
  return { revokedAt: rows[0].revoked_at, isNew: rows[0].revoked_now };
}

/** Raises SQLSTATE WG001 if no workspace matches, or several do. */
export async function findWorkspace(client: pg.ClientBase, idOrName: string): Promise<string> {
  return (await client.query('select gateway.find_workspace($1) as id', [idOrName])).rows[0].id;
}

/** Prints a plain token, as no other function does. Throws Failure when stdout does not take it. */
async function printToken(
  { id, token }: CreatedToken,
  { name, workspaceId, scopes, expiresAt, requestsPerMinute = null }: Omit<TokenOrder, 'ownerId'>,
  json = false,
): Promise<void> {
  const expires = formatMoment(expiresAt);
  if (!json)
    printError(`Token ${id} "${name}" for ${scopes.join(', ')}; expires ${expires ?? 'never'}. It is shown this once:`);
  const fault = await tryPrintLine(
    json ? JSON.stringify({ id, token, name, workspaceId, scopes, expiresAt: expires, requestsPerMinute }) : token,
  );
  if (fault === null) return;
  throw new Failure(
    `The token could not be written to stdout (${fault}) and is lost: \`tokens rotate ${id}\` makes another in its place.`,
  );
}

type ListedToken = Readonly<Record<string, string | number | readonly string[] | null>>;

export const composeMomentSql = (column: string): string =>
  `to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')`;
const listSql = `select id, workspace_id as "workspaceId", workspace_name as "workspaceName", name, scopes,
  ${composeMomentSql('created_at')} as "createdAt", ${composeMomentSql('expires_at')} as "expiresAt", ${composeMomentSql('revoked_at')} as "revokedAt",
  rotated_from as "rotatedFrom", state, ${composeMomentSql('last_used_at')} as "lastUsedAt",
  requests_per_minute as "requestsPerMinute" from gateway.list_tokens($1)`;

/** Deletes expired tokens; a remaining successor forgets its predecessor. */
const pruneSql = `with gone as (
    select id from gateway.api_tokens where expires_at < least($1::date::timestamp at time zone 'UTC', now())),
  freed as (update gateway.api_tokens set rotated_from = null
    where rotated_from in (select id from gone) and id not in (select id from gone)),
  unused as (delete from gateway.token_uses where token_id in (select id from gone)),
  deleted as (delete from gateway.api_tokens where id in (select id from gone) returning 1)
  select count(*) from deleted`;

const columnNames = {
  ID: 'id',
  STATE: 'state',
  CREATED: 'createdAt',
  EXPIRES: 'expiresAt',
  'LAST USED': 'lastUsedAt',
  LIMIT: 'requestsPerMinute',
  WORKSPACE: 'workspaceName',
  NAME: 'name',
  SCOPES: 'scopes',
};

const listTokenCells = (token: ListedToken): string[] =>
  Object.values(columnNames).map((name) => [token[name] ?? (name === 'expiresAt' ? 'never' : '-')].flat().join(' '));

function formatMoment(date: Date | null): string | null {
  return date === null ? null : date.toISOString().replace(/\.\d+Z$/, 'Z');
}

function parseScopes(text: string, scopes: readonly string[]): string[] {
  const chosen = [...new Set(splitList(text))];
  const unknown = chosen.filter((scope) => !scopes.includes(scope));
  if (unknown.length > 0)
    throw new UsageError(`There is no scope ${unknown.join(', ')}. Scopes: ${scopes.join(', ')}.`);
  if (chosen.length === 0) throw new UsageError(`tokens create needs --scopes, of: ${scopes.join(', ')}.`);
  return chosen;
}

/** Accepts 90d, 12h, 30m or never (null). */
function parseExpiry(within = '90d'): Date | null {
  if (within === 'never') return null;
  const [, count, unit = ''] = /^([1-9]\d{0,5})([mhd])$/.exec(within) ?? [];
  if (count === undefined)
    throw new UsageError(`--expires-in must be such as 90d, 12h, 30m or never, not "${within}".`);
  const minutes = { m: 1, h: 60, d: 1440 }[unit] ?? 0;
  return new Date(Date.now() + Number(count) * minutes * 60_000);
}

export function requireDay(option: string, day: string): void {
  if (!fieldTypes.date.query.isValue(day))
    throw new UsageError(`--${option} must be a date such as 2026-03-31, not "${day}".`);
}

function parseTokenId([text, ...others]: readonly string[]): string {
  if (text === undefined || others.length > 0)
    throw new UsageError('Give the id of one token; `tokens list` shows it.');
  if (/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text)) return text;
  // The text is not repeated: it may be the token itself.
  throw new UsageError('That is not the id of a token; `tokens list` shows it.');
}

/** Turns errors of class WG into Failures: sql/core/003_tokens.sql raises them with sentences for the operator. */
export function rephrase(error: unknown): never {
  const { code, message } = error as { code?: string; message: string };
  if (code?.startsWith('WG')) throw new Failure(foldToOneLine(message));
  if (code === '3F000' || code === '42883' || code === '42P01')
    throw new Failure('The database lacks the functions or views for tokens: run `migrate` first.');
  throw error;
}
