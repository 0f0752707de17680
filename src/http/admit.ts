import type { Context } from 'koa';
import { Problem } from '../errors.js';
import type { Observe } from '../events.js';
import { addressKey } from './address.js';
import { type Access, bearerToken, type Tokens, tokenInvalid } from './auth.js';
import { exchangeOf } from './exchange.js';
import { type Limiter, type RateLimitResult, rateLimitHeaders, throttleRepeatedRefusals } from './limits.js';
import { refuseRepeated } from './request-head.js';

/** Dependencies of the admission of a request. */
export interface Admission {
  readonly tokens: Tokens;
  readonly tokenLimiter: Limiter;
  /** Writes count against a limit of their own, too: they cost the primary and its replicas more than reads do. */
  readonly writeLimiter: Limiter;
  readonly failureLimiter: Limiter;
  /** Requests that need no token, per client address. */
  readonly publicLimiter: Limiter;
  readonly observe: Observe;
}

/** Admits a request with a valid token (else 401) within its limits (else 429). Failures are limited per client address. */
export async function admit(deps: Admission, ctx: Context, kind: 'read' | 'write' = 'read'): Promise<Access> {
  const exchange = exchangeOf(ctx);
  refuseRepeated(ctx.req, ['authorization']);
  const access = await identify(deps, ctx);
  exchange.access = access;
  const { requests, writes } = await count(deps, access.tokenId, kind);
  for (const [name, value] of Object.entries(rateLimitHeaders(deps.tokenLimiter, requests)))
    ctx.res.setHeader(name, value);
  exchange.authMs = performance.now() - exchange.startedMs;
  if (writes?.allowed === false) {
    const waitSeconds = Math.max(writes.resetSeconds, requests.allowed ? 0 : requests.resetSeconds);
    deps.observe({ type: 'limit_hit', limit: 'write' });
    await throttleRepeatedRefusals(deps.writeLimiter, writes);
    throw rateLimited(`More than ${deps.writeLimiter.quota} writes in a minute.`, waitSeconds);
  }
  if (requests.allowed) return access;
  deps.observe({ type: 'limit_hit', limit: 'token' });
  await throttleRepeatedRefusals(deps.tokenLimiter, requests);
  throw rateLimited(`More than ${deps.tokenLimiter.quota} requests in a minute.`, requests.resetSeconds);
}

/** Counts a request against each of its limits, unless one refuses it: a request that is answered 429 counts nowhere. */
async function count(
  { tokenLimiter, writeLimiter }: Admission,
  tokenId: string,
  kind: 'read' | 'write',
): Promise<{ requests: RateLimitResult; writes?: RateLimitResult }> {
  if (kind === 'read') return { requests: await tokenLimiter.consume(tokenId) };
  if (!(await writeLimiter.peek(tokenId)).allowed)
    return { requests: await tokenLimiter.peek(tokenId), writes: await writeLimiter.consume(tokenId) };
  const requests = await tokenLimiter.consume(tokenId);
  return requests.allowed ? { requests, writes: await writeLimiter.consume(tokenId) } : { requests };
}

/** Admits a request that needs no token, within the limit of its client address (else 429). */
export async function admitPublic({ publicLimiter, observe }: Admission, ctx: Context): Promise<void> {
  const result = await publicLimiter.consume(addressKey(ctx.ip));
  if (result.allowed) return;
  observe({ type: 'limit_hit', limit: 'public' });
  await throttleRepeatedRefusals(publicLimiter, result);
  throw rateLimited('Too many requests without a token from this address.', result.resetSeconds);
}

function rateLimited(detail: string, waitSeconds: number): Problem {
  return new Problem('rate_limited', detail, { headers: { 'Retry-After': String(waitSeconds) } });
}

async function identify({ tokens, failureLimiter, observe }: Admission, ctx: Context): Promise<Access> {
  const address = addressKey(ctx.ip);
  try {
    const token = bearerToken(ctx.headers.authorization);
    const access = await tokens.find(token, async () => !(await failureLimiter.peek(address)).allowed);
    if (access === null) throw tokenInvalid();
    return access;
  } catch (error) {
    const failed = error instanceof Problem && (error.code === 'token_missing' || error.code === 'token_invalid');
    const failures = failed ? await failureLimiter.consume(address) : null;
    if (failures === null || failures.allowed) throw error;
    observe({ type: 'limit_hit', limit: 'address' });
    await throttleRepeatedRefusals(failureLimiter, failures);
    throw rateLimited('Too many failed authentications from this address.', failures.resetSeconds);
  }
}
