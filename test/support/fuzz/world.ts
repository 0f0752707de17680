import { randomUUID } from 'node:crypto';
import { hashToken, makeToken } from '../../../src/serve/http/token-format.js';
import { canary } from './canaries.js';
import { type Rows, rowsOf } from './rows.js';

export type Sql = <R extends object>(text: string, values?: unknown[]) => Promise<R[]>;

const reads = ['read:klanten', 'read:installaties', 'read:werkbonnen', 'read:logboeken'];
const all = [...reads, 'write:installaties'];
const tokenScopes = {
  all,
  readOnly: reads,
  writeOnly: ['write:installaties'],
  klanten: ['read:klanten'],
  installaties: ['read:installaties'],
  werkbonnen: ['read:werkbonnen'],
  logboeken: ['read:logboeken'],
  expired: all,
  revoked: all,
} as const;
export type TokenName = keyof typeof tokenScopes;
const tokenNames = Object.keys(tokenScopes) as TokenName[];

export interface FuzzWorkspace {
  readonly number: number;
  readonly id: string;
  readonly tokens: Readonly<Record<TokenName, string>>;
  readonly customers: readonly string[];
  readonly installations: readonly string[];
  readonly workOrders: readonly string[];
}

/** A token that is expired or revoked has null. */
export interface Grant {
  readonly workspace: FuzzWorkspace;
  readonly scopes: ReadonlySet<string> | null;
}

export interface World {
  readonly workspaces: readonly FuzzWorkspace[];
  readonly grants: ReadonlyMap<string, Grant>;
  /** The data keys may appear nowhere. */
  readonly secrets: readonly string[];
}

const tables = ['klanten', 'installaties', 'werkbonnen', 'werkbon_handelingen', 'werkbon_uren', 'logboeken'];

/** Empties the reference app's tables and fills them with `count` workspaces, the first of them larger. A few seconds. */
export async function makeWorld(sql: Sql, dataKeys: Readonly<Record<string, string>>, count: number): Promise<World> {
  const keys = Object.fromEntries(Object.entries(dataKeys).map(([id, key]) => [id, Buffer.from(key, 'base64')]));
  const names = ['workspaces', 'users', 'api_tokens', ...tables].map((table) => `app.${table}`);
  await sql(`truncate ${names.join(', ')}, gateway.idempotency`);
  const workspaces: FuzzWorkspace[] = [];
  for (let number = 0; number < count; number++) {
    const id = randomUUID();
    const rows = rowsOf(number, id, number === 0 ? 400 : 20 + number, keys);
    const tokens = await admitted(sql, number, id);
    for (const table of tables) await insert(sql, table, rows);
    workspaces.push({
      number,
      id,
      tokens,
      customers: idsOf(rows, 'klanten'),
      installations: idsOf(rows, 'installaties'),
      workOrders: idsOf(rows, 'werkbonnen'),
    });
  }
  for (const table of tables) await sql(`analyze app.${table}`);
  const grants = new Map<string, Grant>();
  for (const workspace of workspaces) {
    for (const name of tokenNames) {
      const isValid = name !== 'expired' && name !== 'revoked';
      grants.set(workspace.tokens[name], { workspace, scopes: isValid ? new Set(tokenScopes[name]) : null });
    }
  }
  return { workspaces, grants, secrets: Object.values(dataKeys) };
}

async function admitted(sql: Sql, number: number, id: string): Promise<FuzzWorkspace['tokens']> {
  const owner = randomUUID();
  const secret = (): string => canary(number, 'never');
  await sql('insert into app.workspaces (id, naam) values ($1, $2)', [id, secret()]);
  await sql('insert into app.users (id, workspace_id, naam, email, rol) values ($1, $2, $3, $4, $5)', [
    owner,
    id,
    secret(),
    secret(),
    'owner',
  ]);
  const tokens: Record<string, string> = {};
  for (const name of tokenNames) {
    const text = makeToken();
    tokens[name] = text;
    await sql(
      `insert into app.api_tokens (id, workspace_id, created_by, naam, token_hash, scopes, created_at, expires_at, revoked_at)
       values ($1, $2, $3, $4, $5, $6, now() - interval '2 days', now() + $7::interval, now() + $8::interval)`,
      [
        randomUUID(),
        id,
        owner,
        secret(),
        hashToken(text),
        tokenScopes[name],
        name === 'expired' ? '-1 hour' : null,
        name === 'revoked' ? '-1 hour' : null,
      ],
    );
  }
  return tokens as FuzzWorkspace['tokens'];
}

async function insert(sql: Sql, table: string, rows: Rows): Promise<void> {
  const columns = Object.keys(rows[table]?.[0] ?? {}).join(', ');
  await sql(
    `insert into app.${table} (${columns}) select ${columns} from jsonb_populate_recordset(null::app.${table}, $1)`,
    [JSON.stringify(rows[table])],
  );
}

function idsOf(rows: Rows, table: string): string[] {
  return (rows[table] ?? []).map((row) => String(row.id));
}
