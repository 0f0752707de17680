import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import type { Resource } from '../definition/resource.js';
import { newToken, tokenHash } from '../http/token-format.js';

/** The scopes of the API: read:<resource> for each, and write:<resource> where it can be written. */
export function scopesOf(resources: readonly Resource[]): string[] {
  return [
    ...resources.map(({ name }) => `read:${name}`),
    ...resources.filter(({ write }) => write !== undefined).map(({ name }) => `write:${name}`),
  ];
}

/** The properties of a new token. */
export interface TokenOrder {
  readonly workspaceId: string;
  /** One of gateway.token_owners for that workspace; other users are refused with SQLSTATE WG003. */
  readonly ownerId: string;
  readonly name: string;
  readonly scopes: readonly string[];
  /** null: it never expires. */
  readonly expiresAt: Date | null;
}

/** A new token. `token` is the plain text, which is not stored: the database holds its hash. */
export interface CreatedToken {
  readonly id: string;
  readonly token: string;
}

/** A token as it can be listed. */
export interface ListedToken {
  readonly id: string;
  readonly workspace_id: string;
  readonly workspace_name: string;
  readonly name: string;
  readonly scopes: string[];
  readonly created_at: Date;
  readonly expires_at: Date | null;
  readonly revoked_at: Date | null;
  readonly rotated_from: string | null;
  /** To the minute; null: not since the gateway notes it. */
  readonly last_used_at: Date | null;
  readonly state: 'active' | 'expired' | 'revoked';
}

/** Creates a token on a connection as the admin role. */
export async function createToken(client: pg.ClientBase, order: TokenOrder): Promise<CreatedToken> {
  const id = randomUUID();
  const token = newToken();
  await client.query('select gateway.create_token($1, $2, $3, $4, $5, $6, $7, null)', [
    id,
    order.workspaceId,
    order.ownerId,
    order.name,
    tokenHash(token),
    order.scopes,
    order.expiresAt,
  ]);
  return { id, token };
}

/** Replaces a token by a successor and revokes it, both or neither (one statement). SQLSTATE WG004: unknown; WG005: revoked. */
export async function rotateToken(
  client: pg.ClientBase,
  id: string,
  expiresAt: Date | null,
): Promise<CreatedToken & { workspaceId: string; name: string; scopes: string[] }> {
  const successor = randomUUID();
  const token = newToken();
  const { rows } = await client.query('select * from gateway.rotate_token($1, $2, $3, $4)', [
    id,
    successor,
    tokenHash(token),
    expiresAt,
  ]);
  return { id: successor, token, workspaceId: rows[0].workspace_id, name: rows[0].name, scopes: rows[0].scopes };
}

/** Revokes a token; `now` is false when it was revoked before. SQLSTATE WG004: unknown. */
export async function revokeToken(client: pg.ClientBase, id: string): Promise<{ revokedAt: Date; now: boolean }> {
  const { rows } = await client.query('select * from gateway.revoke_token($1)', [id]);
  return { revokedAt: rows[0].revoked_at, now: rows[0].revoked_now };
}

/** The tokens of a workspace, or of all for null. */
export async function listTokens(client: pg.ClientBase, workspaceId: string | null): Promise<ListedToken[]> {
  return (await client.query<ListedToken>('select * from gateway.list_tokens($1)', [workspaceId])).rows;
}

/** The id of the workspace with this id or name. SQLSTATE WG001: none, or several. */
export async function findWorkspace(client: pg.ClientBase, idOrName: string): Promise<string> {
  return (await client.query('select gateway.find_workspace($1) as id', [idOrName])).rows[0].id;
}

/** The id of the workspace's user with this id or e-mail address. SQLSTATE WG002: none, or several. */
export async function findUser(client: pg.ClientBase, workspaceId: string, idOrEmail: string): Promise<string> {
  return (await client.query('select gateway.find_user($1, $2) as id', [workspaceId, idOrEmail])).rows[0].id;
}
