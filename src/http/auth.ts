import { LRUCache } from 'lru-cache';
import type { Replica } from '../db/replica.js';
import { withReplica } from '../db/replicas.js';
import type { Statement, WorkspaceId } from '../db/statement.js';
import { Problem } from '../errors.js';
import type { Observe } from '../events.js';
import type { Settings } from '../settings.js';
import { tokenHash, wellFormed } from './token-format.js';

/** What a valid token grants, and to whom. */
export interface Access {
  readonly tokenId: string;
  readonly workspace: WorkspaceId;
  readonly scopes: ReadonlySet<string>;
  /** Epoch milliseconds; Infinity for a token that does not expire. */
  readonly expiresAtMs: number;
}

const findToken: Statement = {
  name: 'find-token',
  text: `select token_id, workspace_id, scopes, (extract(epoch from expires_at) * 1000)::bigint, revoked_at is not null
    from gateway.find_token($1)`,
  parameters: ['hash'],
};
/** How long a token that was not found is refused without asking again. */
const refusalMs = 1000;
const realm = 'Bearer realm="workspace-data-api"';

/** Looks tokens up on a replica, by hash, and keeps the verdict for at most tokenCacheMs. One look-up at a time per token. */
export class Tokens {
  readonly #verdicts: LRUCache<string, { access: Access | null }>;
  /** Hashes that were valid lately: they are looked up even while their address is refused for failures. */
  readonly #known = new LRUCache<string, true>({ max: 10_000, ttl: 600_000 });

  constructor(replicas: readonly Replica[], settings: Settings, observe: Observe) {
    this.#verdicts = new LRUCache({
      max: settings.tokenCacheMax,
      ttl: Math.max(1, settings.tokenCacheMs),
      fetchMethod: async (key: string, _stale, { options }) => {
        const hash = Buffer.from(key, 'base64');
        const access = await withReplica(replicas, {}, observe, (replica) =>
          lookUp(replica, hash, settings.queueWaitMs),
        );
        if (access === null) options.ttl = Math.min(options.ttl ?? 0, refusalMs); // a new token may just not be there yet
        return { access };
      },
    });
  }

  /**
   * What the token grants; null for unknown, expired, revoked and malformed ones alike. Where `onlyKnown`, which is asked
   * only about tokens that are not in memory, no database is asked for strangers.
   */
  async find(token: string, onlyKnown: () => Promise<boolean>): Promise<Access | null> {
    if (!wellFormed(token)) return null;
    const key = tokenHash(token).toString('base64');
    const verdict = this.#verdicts.get(key) ?? (await this.#look(key, onlyKnown));
    const access = verdict?.access ?? null;
    if (access === null || access.expiresAtMs <= Date.now()) return null;
    this.#known.set(key, true);
    return access;
  }

  async #look(key: string, onlyKnown: () => Promise<boolean>): Promise<{ access: Access | null } | undefined> {
    if (!this.#known.has(key) && (await onlyKnown())) return undefined;
    return this.#verdicts.fetch(key);
  }
}

async function lookUp(replica: Replica, hash: Buffer, waitMs: number): Promise<Access | null> {
  let access: Access | null = null;
  await replica.short.run({ statement: findToken, workspace: null, values: { hash } }, { waitMs }, (row) => {
    const [id, workspace, scopes, expires, revoked] = row.texts();
    if (revoked === 't') return;
    access = {
      tokenId: id as string,
      workspace: workspace as WorkspaceId,
      scopes: new Set((scopes as string).split(' ')),
      expiresAtMs: expires === null || expires === undefined ? Number.POSITIVE_INFINITY : Number(expires),
    };
  });
  return access;
}

/** The token of an Authorization header (RFC 6750 §2.1). Throws token_missing, or token_invalid for another scheme. */
export function bearerToken(authorization: string | undefined): string {
  if (authorization === undefined || authorization.trim() === '') throw tokenMissing();
  const match = /^bearer +([^ ]+) *$/i.exec(authorization);
  if (match === null) throw /^bearer\b/i.test(authorization) ? tokenInvalid() : tokenMissing();
  return match[1] as string;
}

function tokenMissing(): Problem {
  return new Problem('token_missing', 'Send a token as Authorization: Bearer …', {
    headers: { 'WWW-Authenticate': realm },
  });
}

/** Unknown, expired, revoked and malformed look the same. */
export function tokenInvalid(): Problem {
  const headers = { 'WWW-Authenticate': `${realm}, error="invalid_token"` };
  return new Problem('token_invalid', 'The token is unknown, expired or revoked.', { headers });
}

/** Throws insufficient_scope; decided before anything is looked up. */
export function requireScope(access: Access, scope: string): void {
  if (access.scopes.has(scope)) return;
  const headers = { 'WWW-Authenticate': `${realm}, error="insufficient_scope", scope="${scope}"` };
  throw new Problem('insufficient_scope', `The token lacks the scope ${scope}.`, { headers });
}
