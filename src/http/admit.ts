import type { Context } from 'koa';
import { Problem } from '../errors.js';
import type { Observe } from '../events.js';
import { addressKey } from './address.js';
import { type Access, bearerToken, type Tokens, tokenInvalid } from './auth.js';
import { exchangeOf } from './exchange.js';
import { type Limiter, rateLimitHeaders, throttleRepeatedRefusals } from './limits.js';
import { refuseRepeated } from './request-head.js';

/** What deciding over a request's admission needs. */
export interface Admission {
  readonly tokens: Tokens;
  readonly tokenLimiter: Limiter;
  readonly failureLimiter: Limiter;
  readonly observe: Observe;
}

/** Who may come in: a valid token (else 401) within its limit (else 429). Failures are limited per client address. */
export async function admit(deps: Admission, ctx: Context): Promise<Access> {
  const exchange = exchangeOf(ctx);
  refuseRepeated(ctx.req, ['authorization']);
  const access = await identify(deps, ctx);
  exchange.access = access;
  const allowance = await deps.tokenLimiter.consume(access.tokenId);
  for (const [name, value] of Object.entries(rateLimitHeaders(deps.tokenLimiter, allowance)))
    ctx.res.setHeader(name, value);
  exchange.authMs = performance.now() - exchange.startedMs;
  if (allowance.allowed) return access;
  deps.observe({ type: 'limit_hit', limit: 'token' });
  await throttleRepeatedRefusals(deps.tokenLimiter, allowance);
  throw new Problem('rate_limited', `More than ${deps.tokenLimiter.quota} requests in a minute.`, {
    headers: { 'Retry-After': String(allowance.resetSeconds) },
  });
}

async function identify({ tokens, failureLimiter, observe }: Admission, ctx: Context): Promise<Access> {
  const address = addressKey(ctx.ip);
  try {
    const token = bearerToken(ctx.headers.authorization);
    const access = await tokens.find(token, () => failureLimiter.exhausted(address));
    if (access === null) throw tokenInvalid();
    return access;
  } catch (error) {
    const failed = error instanceof Problem && (error.code === 'token_missing' || error.code === 'token_invalid');
    const failures = failed ? await failureLimiter.consume(address) : null;
    if (failures === null || failures.allowed) throw error;
    observe({ type: 'limit_hit', limit: 'address' });
    await throttleRepeatedRefusals(failureLimiter, failures);
    throw new Problem('rate_limited', 'Too many failed authentications from this address.', {
      headers: { 'Retry-After': String(failures.resetSeconds) },
    });
  }
}
