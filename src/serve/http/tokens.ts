import { LRUCache } from 'lru-cache';
import { atMost } from '../../base/cache-bound.js';
import type { Observe } from '../../base/events.js';
import type { Gate } from '../../base/flow/gate.js';
import { type ReadTarget, withServer } from '../../postgres/choice.js';
import type { Replica } from '../../postgres/replica.js';
import { prepared, type WorkspaceId } from '../../postgres/statement.js';
import { tokenKey, wellFormed } from './token-format.js';

/** The rights of a token that the database has. */
export interface Access {
  readonly tokenId: string;
  /** The name that its owner gave it. */
  readonly name: string;
  readonly workspace: WorkspaceId;
  readonly scopes: ReadonlySet<string>;
  /** Epoch milliseconds; Infinity for a token that does not expire. */
  readonly expiresAtMs: number;
  /** Why it is refused, such as `revoked`; null for a valid one, until it expires. `no owner`: its workspace or its user is gone. */
  readonly refusal: 'revoked' | 'no owner' | null;
}

/** A token without rights. */
export interface Refusal {
  /** Keys under which the failure counts: the client's address, the hash of a token that was looked up, or both. */
  readonly failureKeys: readonly string[];
  /** The token, where the database has it, and why it is refused: for the log. */
  readonly token?: { readonly id: string; readonly reason: string };
}

/** Dependencies and bounds of token look-ups. */
export interface TokenDeps {
  readonly replicas: readonly Replica[];
  readonly observe: Observe;
  /** Number of cached results, and the time for which they are kept. */
  readonly tokenCacheMax: number;
  readonly tokenCacheMs: number;
  /** How long a look-up waits for its turn, and for a connection. */
  readonly queueWaitMs: number;
  /** The gate of look-ups of unknown tokens. */
  readonly gate: Gate;
  /** Called for a token that is valid, once per look-up: at most twice in tokenCacheMs. */
  readonly noteUse: (tokenId: string) => void;
}

/** Result of a look-up; null for a token without rights. */
interface LookUp {
  readonly access: Access | null;
}

const findToken = prepared(
  'find-token',
  `select token_id, workspace_id, scopes, (extract(epoch from expires_at) * 1000)::bigint,
      case when revoked_at = '-infinity' then 'no owner' when revoked_at is not null then 'revoked' end, name
    from gateway.find_token($1)`,
  ['hash'],
);
/** How long a token that was not found is refused without a look-up; short, because a new token reaches the replica late. */
const refusalMs = 1000;

/** A renewal that fails leaves the cached result to its end. */
const renewal = { forceRefresh: true, noDeleteOnFetchRejection: true };

/**
 * Looks tokens up on a replica, by hash, and caches the result for at most tokenCacheMs. A token that was valid in the last
 * ten minutes is looked up without waiting; unknown tokens share a bounded queue, so that a flood of them delays no others.
 */
export class Tokens {
  readonly #deps: TokenDeps;
  readonly #lookUps: LRUCache<string, LookUp>;
  readonly #known = new LRUCache<string, true>({ ...atMost(10_000), ttl: 600_000 });
  readonly #refused = new LRUCache<string, true>({ ...atMost(10_000), ttl: 60_000 });

  constructor(deps: TokenDeps) {
    this.#deps = deps;
    this.#lookUps = new LRUCache({
      ...atMost(deps.tokenCacheMax),
      ttl: Math.max(1, deps.tokenCacheMs),
      ignoreFetchAbort: true, // a look-up that others push out of the cache still has its result
      fetchMethod: async (key: string, _stale, { options }) => {
        const hash = Buffer.from(key, 'base64');
        const access = await withServer(
          deps,
          () => ({}),
          ({ target }) => lookUp(target, hash, deps.queueWaitMs),
        );
        if (access === null || access.refusal !== null) options.ttl = Math.min(options.ttl ?? 0, refusalMs);
        else if (access.expiresAtMs > Date.now()) {
          this.#known.set(key, true);
          deps.noteUse(access.tokenId);
        }
        return { access };
      },
    });
  }

  /**
   * The rights of a token whose valid result is cached; null for any other token. Renews the result in the second half of its
   * time, so that no request waits for the look-up of a token in steady use.
   */
  cached(token: string): Access | null {
    const key = tokenKey(token);
    const access = this.#lookUps.get(key)?.access ?? null;
    if (access !== null && this.#lookUps.getRemainingTTL(key) < this.#lookUps.ttl / 2)
      this.#lookUps.fetch(key, renewal).catch(() => {});
    return access !== null && refusalOf(access) === null ? access : null;
  }

  /**
   * The rights of the token, or the refusal of an unknown, expired, revoked or malformed token. `address` is the client's
   * (addressKey); `mayLookUp` says whether a token of it that was not valid lately is looked up. Throws Problem `overloaded` when too many
   * look-ups of unknown tokens wait.
   */
  async find(token: string, address: string, mayLookUp: () => Promise<boolean>): Promise<Access | Refusal> {
    if (!wellFormed(token)) return { failureKeys: [address] };
    const key = tokenKey(token);
    const isKept = this.#lookUps.has(key) || this.#known.has(key);
    if (!isKept && !(await mayLookUp())) return { failureKeys: [address] };
    const { access } = this.#lookUps.get(key) ?? (await this.#lookUp(key, address));
    if (access === null) return this.#refuse(key, address);
    const reason = refusalOf(access);
    return reason === null ? access : { ...this.#refuse(key, address), token: { id: access.tokenId, reason } };
  }

  /** A repeat of a refused token counts for the token alone, so that it does not exhaust the address that others share. */
  #refuse(key: string, address: string): Refusal {
    const isRepeated = this.#refused.has(key);
    this.#refused.set(key, true);
    return { failureKeys: isRepeated ? [key] : [address, key] };
  }

  async #lookUp(key: string, address: string): Promise<LookUp> {
    if (this.#known.has(key)) return (await this.#lookUps.fetch(key)) as LookUp;
    const { gate, queueWaitMs } = this.#deps;
    const release = await gate.enter([''], { waitMs: queueWaitMs, lane: address });
    try {
      return (await this.#lookUps.fetch(key)) as LookUp;
    } finally {
      release();
    }
  }
}

function refusalOf({ refusal, expiresAtMs }: Access): string | null {
  return refusal ?? (expiresAtMs <= Date.now() ? 'expired' : null);
}

async function lookUp({ short }: ReadTarget, hash: Buffer, waitMs: number): Promise<Access | null> {
  let access: Access | null = null;
  await short.run({ statement: findToken, workspace: null, values: { hash } }, { waitMs }, (row) => {
    const [id, workspace, scopes, expires, revoked, name] = row.texts();
    access = {
      refusal: (revoked ?? null) as Access['refusal'],
      tokenId: id as string,
      name: name ?? '',
      workspace: workspace as WorkspaceId,
      scopes: new Set((scopes as string).split(' ')),
      expiresAtMs: expires === null || expires === undefined ? Number.POSITIVE_INFINITY : Number(expires),
    };
  });
  return access;
}
