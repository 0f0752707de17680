import { parseArgs } from 'node:util';
import { asAdmin } from '../db/admin.js';
import { loadResources } from '../definition/load.js';
import { meantBy } from '../nearest-name.js';
import { loadSettings } from '../settings.js';
import { adminUrl } from './admin-url.js';
import { type Command, Failure, oneLine, print, printed, printText, say, UsageError } from './command.js';
import { parseExpiry, parseName, parseScopes, parseTokenId } from './token-options.js';
import {
  type CreatedToken,
  createToken,
  findUser,
  findWorkspace,
  type ListedToken,
  listTokens,
  revokeToken,
  rotateToken,
  scopesOf,
} from './token-store.js';

const options = {
  workspace: { type: 'string' },
  owner: { type: 'string' },
  name: { type: 'string' },
  scopes: { type: 'string' },
  'expires-in': { type: 'string' },
  'expires-at': { type: 'string' },
  json: { type: 'boolean' },
} as const;

type OptionName = keyof typeof options;
type Given = { [name in Exclude<OptionName, 'json'>]?: string } & { json?: boolean };

interface Action {
  /** Options it takes; the others are refused. */
  readonly takes: readonly OptionName[];
  readonly takesId: boolean;
  run(given: Given, id: string | undefined): Promise<void>;
}

const expiry = ['expires-in', 'expires-at', 'json'] as const;
const actions: Readonly<Record<string, Action>> = {
  create: { takes: ['workspace', 'owner', 'name', 'scopes', ...expiry], takesId: false, run: create },
  list: { takes: ['workspace', 'json'], takesId: false, run: list },
  rotate: { takes: expiry, takesId: true, run: rotate },
  revoke: { takes: [], takesId: true, run: revoke },
};

/** `tokens`: manages access tokens, on the primary. */
export const tokens: Command = async ([name, ...rest]) => {
  const action = name !== undefined && Object.hasOwn(actions, name) ? actions[name] : undefined;
  if (action === undefined) {
    const needed = `tokens needs one of: ${Object.keys(actions).join(', ')}`;
    throw new UsageError(`${needed}${meantBy(name ?? '', Object.keys(actions))}`);
  }
  const { values, positionals } = parseArgs({ args: rest, options, allowPositionals: action.takesId });
  for (const option of Object.keys(values)) {
    if (!action.takes.includes(option as OptionName)) throw new UsageError(`tokens ${name} does not take --${option}.`);
  }
  if (positionals.length > 1) throw new UsageError(`tokens ${name} takes one id.`);
  await action.run(values, positionals[0]).catch(rephrase);
  return 0;
};

async function create(given: Given): Promise<void> {
  const workspace = required(given, 'workspace');
  const owner = required(given, 'owner');
  const name = parseName(required(given, 'name'));
  const scopes = parseScopes(
    required(given, 'scopes'),
    scopesOf(loadResources(loadSettings(process.env).resourcesDir)),
  );
  const expiresAt = parseExpiry(given, new Date());
  await asAdmin(adminUrl(), async (client) => {
    const workspaceId = await findWorkspace(client, workspace);
    const ownerId = await findUser(client, workspaceId, owner);
    const created = await createToken(client, { workspaceId, ownerId, name, scopes, expiresAt });
    await show(created, { name, workspaceId, scopes, expiresAt }, given.json);
  });
}

async function rotate(given: Given, text: string | undefined): Promise<void> {
  const id = parseTokenId(text);
  const expiresAt = parseExpiry(given, new Date());
  const made = await asAdmin(adminUrl(), (client) => rotateToken(client, id, expiresAt));
  say(`Token ${id} is revoked.`);
  await show(made, { ...made, expiresAt }, given.json);
}

async function revoke(_: Given, text: string | undefined): Promise<void> {
  const id = parseTokenId(text);
  const { revokedAt, now } = await asAdmin(adminUrl(), (client) => revokeToken(client, id));
  say(now ? `Token ${id} is revoked.` : `Token ${id} was revoked before, at ${moment(revokedAt)}.`);
}

async function list(given: Given): Promise<void> {
  const found = await asAdmin(adminUrl(), async (client) =>
    listTokens(client, given.workspace === undefined ? null : await findWorkspace(client, given.workspace)),
  );
  if (given.json) printText(JSON.stringify(found.map(listed), null, 2));
  else table(found);
}

interface Described {
  readonly name: string;
  readonly workspaceId: string;
  readonly scopes: readonly string[];
  readonly expiresAt: Date | null;
}

/** Prints a plain token; no other function does. Throws Failure when stdout does not take it: it is shown at no other time. */
async function show(
  { id, token }: CreatedToken,
  { name, workspaceId, scopes, expiresAt }: Described,
  json = false,
): Promise<void> {
  if (!json)
    say(
      `Token ${id} "${name}" for ${scopes.join(', ')}; expires ${moment(expiresAt) ?? 'never'}. It is shown this once:`,
    );
  const shown = json ? JSON.stringify({ id, token, name, workspaceId, scopes, expiresAt: moment(expiresAt) }) : token;
  const fault = await printed(shown);
  if (fault === null) return;
  throw new Failure(
    `The token could not be written to stdout (${fault}) and is lost: \`tokens rotate ${id}\` makes another in its place.`,
  );
}

function listed(token: ListedToken): Record<string, unknown> {
  return {
    id: token.id,
    name: token.name,
    workspaceId: token.workspace_id,
    workspaceName: token.workspace_name,
    scopes: token.scopes,
    createdAt: moment(token.created_at),
    expiresAt: moment(token.expires_at),
    revokedAt: moment(token.revoked_at),
    lastUsedAt: moment(token.last_used_at),
    rotatedFrom: token.rotated_from,
    state: token.state,
  };
}

function table(tokens: readonly ListedToken[]): void {
  if (tokens.length === 0) {
    say('There are no tokens.');
    return;
  }
  const rows = [
    ['ID', 'STATE', 'CREATED', 'EXPIRES', 'LAST USED', 'WORKSPACE', 'NAME', 'SCOPES'],
    ...tokens.map((token) => [
      token.id,
      token.state,
      moment(token.created_at) ?? '',
      moment(token.expires_at) ?? 'never',
      moment(token.last_used_at) ?? '-',
      token.workspace_name,
      token.name,
      token.scopes.join(' '),
    ]),
  ];
  const widths = rows.reduce(
    (widest, row) => row.map((cell, i) => Math.max(cell.length, widest[i] ?? 0)),
    [] as number[],
  );
  for (const row of rows) {
    const cells = row.map((cell, i) => cell.padEnd(widths[i] ?? 0));
    print(cells.join('  ').trimEnd());
  }
}

function moment(date: Date | null): string | null {
  return date === null ? null : date.toISOString().replace(/\.\d+Z$/, 'Z');
}

function required(given: Given, name: 'workspace' | 'owner' | 'name' | 'scopes'): string {
  const value = given[name];
  if (value === undefined || value === '') throw new UsageError(`tokens create needs --${name}.`);
  return value;
}

/** SQLSTATE class WG: sentences written for the operator in sql/core/003_tokens.sql. */
function rephrase(error: unknown): never {
  const { code, message } = error as { code?: string; message: string };
  if (code?.startsWith('WG')) throw new Failure(oneLine(message));
  if (code === '3F000' || code === '42883' || code === '42P01')
    throw new Failure('The database lacks the functions or views for tokens: run `migrate` first.');
  throw error;
}
