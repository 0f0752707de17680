import { LRUCache } from 'lru-cache';
import { limitEntries } from '../../base/cache-bound.js';
import { Shortage } from '../../base/errors.js';
import type { Observe } from '../../base/events.js';
import type { Gate } from '../../base/flow/gate.js';
import { type ReadTarget, runOnServer } from '../../postgres/choice.js';
import type { Replica } from '../../postgres/replica.js';
import { prepareSql, type WorkspaceId } from '../../postgres/statement.js';
import type { Settings } from '../../settings.js';
import { deriveTokenKey, isWellFormed } from './token-format.js';

export interface Access {
  readonly tokenId: string;
  readonly name: string;
  readonly workspace: WorkspaceId;
  readonly scopes: ReadonlySet<string>;
  /** In epoch milliseconds; Infinity means that the token does not expire. */
  readonly expiresAtMs: number;
  readonly requestsPerMinute: number | undefined;
  /** Null for a valid token, until it expires. For `no owner` the workspace or the user is gone. */
  readonly refusal: 'revoked' | 'no owner' | null;
}

export interface TokenRefusal {
  /** Keys that a failure counts against: the client's address, the hash of a token that was looked up, or both. */
  readonly failureKeys: readonly string[];
  readonly token?: { readonly id: string; readonly reason: string };
}

export interface TokenDeps extends Pick<Settings, 'tokenCacheMax' | 'tokenCacheMs' | 'queueWaitMs'> {
  readonly replicas: readonly Replica[];
  readonly observe: Observe;
  readonly gate: Gate;
  /** Target of look-ups while no replica can be used. */
  readonly lendPrimary: () => ReadTarget | null;
  /** If the database fits, a token that it lacks is unknown; with `again` the database is looked at again. */
  readonly mayRefuse: (again: boolean) => boolean | Promise<boolean>;
  /** Is called once per look-up of a valid token: at most twice in tokenCacheMs. */
  readonly noteUse: (tokenId: string) => void;
}

type LookUp = { readonly access: Access | null };

export interface TokenClient {
  readonly address: string;
  /** Aborts when the client has closed the connection. */
  readonly signal: AbortSignal;
  /** Is asked for a token that was not valid lately. */
  readonly mayLookUp: () => Promise<boolean>;
}

const findToken = prepareSql(
  'find_token',
  `select token_id, workspace_id, scopes, (extract(epoch from expires_at) * 1000)::bigint,
      case when revoked_at = '-infinity' then 'no owner' when revoked_at is not null then 'revoked' end, name,
      requests_per_minute
    from gateway.find_token($1)`,
  ['hash'],
);
/** Time for which a refusal is cached; short, because a new token reaches the replica late. */
const refusalMs = 1000;
/** After a failed renewal the cached result stays until its end. */
const renewal = { forceRefresh: true, noDeleteOnFetchRejection: true };

/** Looks tokens up. Unknown tokens share a bounded queue, so that a flood of them delays no known one. */
export class Tokens {
  readonly #cache: LRUCache<string, LookUp>;
  /** Workspaces of tokens that worked in the last ten minutes. */
  readonly #workedLately = new LRUCache<string, WorkspaceId>({ ...limitEntries(10_000), ttl: 600_000 });
  readonly #refused = new LRUCache<string, true>({ ...limitEntries(10_000), ttl: 60_000 });

  constructor(private readonly deps: TokenDeps) {
    this.#cache = new LRUCache({
      ...limitEntries(deps.tokenCacheMax),
      ttl: Math.max(1, deps.tokenCacheMs),
      ignoreFetchAbort: true, // a look-up that others push out of the cache still has its result
      fetchMethod: async (key: string, _stale, { options }) => {
        const hash = Buffer.from(key, 'base64');
        const access = await runOnServer(deps, { orPrimary: true }, ({ target }) =>
          readAccess(target, hash, deps.queueWaitMs),
        );
        if (access === null || access.refusal !== null) options.ttl = Math.min(options.ttl ?? 0, refusalMs);
        else if (access.expiresAtMs > Date.now()) {
          this.#workedLately.set(key, access.workspace);
          this.#refused.delete(key);
          deps.noteUse(access.tokenId);
        }
        return { access };
      },
    });
  }

  /** Returns null unless a valid result is cached. Renews it once half its time is over, so that steady use waits for no look-up. */
  getCached(token: string): Access | null {
    const key = deriveTokenKey(token);
    const access = this.#cache.get(key)?.access ?? null;
    if (findRefusal(access) !== null) return null;
    if (this.#cache.getRemainingTTL(key) < this.#cache.ttl / 2) this.#cache.fetch(key, renewal).catch(() => {});
    return access;
  }

  /** Throws Problem `overloaded` when too many wait, and Shortage while the database cannot tell which tokens there are. */
  async find(token: string, client: TokenClient): Promise<Access | TokenRefusal> {
    const { address } = client;
    if (!isWellFormed(token)) return { failureKeys: [address] };
    const key = deriveTokenKey(token);
    const isKept = this.#cache.has(key) || this.#workedLately.has(key);
    if (!isKept && !(await client.mayLookUp())) return { failureKeys: [address] };
    let { access } = this.#cache.get(key) ?? (await this.#lookUpInTurn(key, client));
    let reason = findRefusal(access);
    if (reason !== null && !(await this.deps.mayRefuse(false))) throw new Shortage('no look-up');
    const workspace = this.#workedLately.get(key);
    if (isLoss(reason) && workspace !== undefined) {
      if (!this.#refused.has(key)) {
        if (!(await this.deps.mayRefuse(true))) throw new Shortage('no look-up');
        ({ access } = (await this.#cache.fetch(key, renewal)) as LookUp); // the database may fit again
        reason = findRefusal(access);
      }
      if (isLoss(reason)) this.deps.observe({ type: 'known_token_refused', reason, workspace });
    }
    if (access !== null && reason === null) return access;
    const refusal = this.#refuse(key, address);
    return access === null ? refusal : { ...refusal, token: { id: access.tokenId, reason: reason as string } };
  }

  /** Counts a repeated refusal for the token alone, to spare the address that others share. */
  #refuse(key: string, address: string): TokenRefusal {
    const isRepeated = this.#refused.has(key);
    this.#refused.set(key, true);
    return { failureKeys: isRepeated ? [key] : [address, key] };
  }

  /** Lets a token that worked lately pass by the queue. */
  async #lookUpInTurn(key: string, { address, signal }: TokenClient): Promise<LookUp> {
    if (this.#workedLately.has(key)) return (await this.#cache.fetch(key)) as LookUp;
    const { gate, queueWaitMs } = this.deps;
    const release = await gate.enter([''], { waitMs: queueWaitMs, lane: address, signal });
    try {
      return (await this.#cache.fetch(key)) as LookUp;
    } finally {
      release();
    }
  }
}

type RefusalReason = Exclude<Access['refusal'], null> | 'expired' | 'unknown';

function findRefusal(access: Access | null): RefusalReason | null {
  if (access === null) return 'unknown';
  const { refusal, expiresAtMs } = access;
  return refusal ?? (expiresAtMs <= Date.now() ? 'expired' : null);
}

/** Tells whether a row is missing, which can be a fault of the database, too. */
function isLoss(reason: RefusalReason | null): reason is 'no owner' | 'unknown' {
  return reason === 'no owner' || reason === 'unknown';
}

async function readAccess({ short }: ReadTarget, hash: Buffer, waitMs: number): Promise<Access | null> {
  let access: Access | null = null;
  await short.run({ statement: findToken, workspace: null, values: { hash } }, { waitMs }, (row) => {
    const [id, workspace, scopes, expires, revoked, name, limit] = row.getTexts();
    access = {
      refusal: (revoked ?? null) as Access['refusal'],
      tokenId: id as string,
      name: name ?? '',
      workspace: workspace as WorkspaceId,
      scopes: new Set((scopes as string).split(' ')),
      expiresAtMs: expires === null || expires === undefined ? Number.POSITIVE_INFINITY : Number(expires),
      requestsPerMinute: limit == null ? undefined : Number(limit),
    };
  });
  return access;
}
