import { isIPv6 } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import ipaddr, { type IPv6 } from 'ipaddr.js';
import type { Context } from 'koa';
import { Problem } from '../../base/errors.js';
import type { LimitName, Observe } from '../../base/events.js';
import type { Limits } from '../../base/flow/gates.js';
import { type RateLimiter, type RateLimitResult, windowSeconds } from '../../base/flow/rate-limiter.js';
import { getSqlState } from '../../postgres/database-errors.js';
import { getExchange, makeClientSignal } from './exchange.js';
import { refuseRepeated } from './request-head.js';
import type { Access, Tokens } from './token-look-up.js';

export interface Admission {
  readonly tokens: Tokens;
  readonly limits: Limits;
  readonly observe: Observe;
  readonly basicAuth: boolean;
}

/** Throws 401 without a valid token, 429 beyond a limit. Failures are limited per address and token. */
export async function admit(deps: Admission, ctx: Context, kind: 'read' | 'write'): Promise<Access> {
  const { token, write } = deps.limits;
  const exchange = getExchange(ctx);
  refuseRepeated(ctx.req, ['authorization']);
  const access = findCachedAccess(deps, ctx) ?? (await authenticate(deps, ctx));
  if (typeof access === 'function') return access();
  exchange.access = access;
  const { tokenId, requestsPerMinute } = access;
  const counted =
    kind === 'write' && write !== null
      ? await countWrite(token, write, access)
      : [{ limit: requestLimit, result: await token.consume(tokenId, requestsPerMinute) }];
  exchange.headers.push(...listRateLimitHeaders(counted));
  exchange.authMs = performance.now() - exchange.startedMs;
  if (counted.every(({ result }) => result.isAllowed)) return access;
  const usedUp = counted.filter(({ result }) => !result.isAllowed);
  const { limit, result } = usedUp[0] as LimitUse;
  const resetSeconds = Math.max(...usedUp.map((each) => each.result.resetSeconds)); // the later end if both limits are used up
  const detail = `More than ${result.quota} ${limit.what} in a minute.`;
  return refuseOverLimit(deps, limit.name, { ...result, resetSeconds }, detail);
}

interface LimitUse {
  readonly limit: typeof requestLimit | typeof writeLimit;
  readonly result: RateLimitResult;
}

const requestLimit = { policy: '"default"', name: 'token', what: 'requests' } as const;
const writeLimit = { policy: '"writes"', name: 'write', what: 'writes' } as const;

/** Lists names and values in turns (draft-ietf-httpapi-ratelimit-headers). */
function listRateLimitHeaders(counted: readonly LimitUse[]): string[] {
  let [policies, left] = ['', ''];
  for (const { limit, result } of counted) {
    const start = policies === '' ? limit.policy : `, ${limit.policy}`;
    policies += `${start};q=${result.quota};w=${windowSeconds}`;
    left += `${start};r=${result.remaining};t=${result.resetSeconds}`;
  }
  return ['RateLimit-Policy', policies, 'RateLimit', left];
}

/** Counts against both limits, unless one refuses: a write that is answered 429 is not counted. */
async function countWrite(token: RateLimiter, write: RateLimiter, access: Access): Promise<LimitUse[]> {
  const { tokenId, requestsPerMinute } = access;
  const isAllowed = (await token.peek(tokenId, requestsPerMinute)).isAllowed;
  const writes = await (isAllowed ? write.consume(tokenId) : write.peek(tokenId));
  const requests = await (isAllowed && !writes.isAllowed
    ? token.peek(tokenId, requestsPerMinute)
    : token.consume(tokenId, requestsPerMinute));
  return [
    { limit: requestLimit, result: requests },
    { limit: writeLimit, result: writes },
  ];
}

/** Throws 429 beyond the limit of a valid token, or without one beyond the limit of the address, which an office can share. */
export async function admitPublic(deps: Admission, ctx: Context): Promise<void> {
  if (ctx.req.headers.authorization !== undefined) {
    const access = findCachedAccess(deps, ctx) ?? (await authenticate(deps, ctx).catch(ignoreOutage));
    if (access !== null && typeof access !== 'function') return void (await admit(deps, ctx, 'read'));
  }
  const result = await deps.limits.public.consume(getAddressKey(ctx.ip));
  const detail = 'Too many requests without a token from this address.';
  if (!result.isAllowed) await refuseOverLimit(deps, 'public', result, detail);
}

/** Ignores that the database cannot look a token up now: a public document needs none. Throws the error of a bug, and ClientGone. */
function ignoreOutage(error: unknown): null {
  if (error instanceof Problem || getSqlState(error) !== undefined) return null;
  throw error;
}

/** Returns null for a token that was not looked up before, or is missing. */
function findCachedAccess({ tokens }: Admission, { req }: Context): Access | null {
  const { authorization = '' } = req.headers;
  return authorization.startsWith('Bearer ') ? tokens.getCached(authorization.slice('Bearer '.length)) : null;
}

/** Throws what answers a failed authentication; a public document is sent instead. */
type Refuse = () => Promise<never>;

/** Counts a failure against the limits of its address and token. Throws as `Tokens.find` does. */
async function authenticate(deps: Admission, ctx: Context): Promise<Access | Refuse> {
  const address = getAddressKey(ctx.ip);
  const token = parseToken(ctx.req.headers.authorization ?? '', deps.basicAuth);
  if (token instanceof Problem) return countFailure(deps, token, address, [address]);
  const client = { address, signal: makeClientSignal(ctx.res), mayLookUp: () => mayLookUp(deps.limits, address) };
  const found = await deps.tokens.find(token, client);
  if ('tokenId' in found) return found;
  getExchange(ctx).refused = found.token ?? null;
  return countFailure(deps, makeTokenInvalid(deps.basicAuth), address, found.failureKeys);
}

async function countFailure(
  deps: Admission,
  problem: Problem,
  address: string,
  keys: readonly string[],
): Promise<Refuse> {
  const counts = await Promise.all(keys.map(async (key) => ({ key, ...(await deps.limits.address.consume(key)) })));
  const [last] = counts.filter(({ isAllowed }) => !isAllowed).sort((a, b) => b.resetSeconds - a.resetSeconds);
  if (last === undefined) return () => Promise.reject(problem);
  const detail = 'Too many failed authentications from this address or with this token.';
  return () => refuseOverLimit(deps, last.key === address ? 'address' : 'refused_token', last, detail);
}

/** Bounds the look-ups, which a flood of unknown tokens would otherwise cost with each 429. */
async function mayLookUp({ address: failures, lookUp }: Limits, address: string): Promise<boolean> {
  return (await failures.peek(address)).isAllowed || (await lookUp.consume(address)).isAllowed;
}

const throttleMs = 200;

/** Answers late after `quota` refusals, so that clients that ignore Retry-After cannot saturate the event loop. */
async function refuseOverLimit(
  { observe }: Admission,
  limit: LimitName,
  result: RateLimitResult,
  detail: string,
): Promise<never> {
  observe({ type: 'limit_hit', limit });
  if (result.refused > result.quota) await sleep(throttleMs);
  throw new Problem('rate_limited', detail, { headers: { 'Retry-After': String(result.resetSeconds) } });
}

/** Throws unless the token has the scope. Must run before any record is looked up, so that the answer reveals none. */
export function requireScope(access: Access, scope: string): void {
  if (access.scopes.has(scope)) return;
  const headers = makeChallenge(false, `, error="insufficient_scope", scope="${scope}"`);
  throw new Problem('insufficient_scope', `The token lacks the scope ${scope}.`, { headers });
}

/** Reads Bearer (RFC 6750 §2.1), or the password of Basic (RFC 7617 §2). Returns Problem token_missing or token_invalid otherwise. */
function parseToken(authorization: string, basicAuth: boolean): string | Problem {
  const [, scheme = ''] = /^(bearer|basic)\b/i.exec(authorization) ?? [];
  const isBasic = scheme.toLowerCase() === 'basic';
  if (scheme === '' || (isBasic && !basicAuth)) return makeTokenMissing(basicAuth);
  const [, credentials] = /^\w+ +([^ ]+) *$/.exec(authorization) ?? [];
  if (credentials === undefined) return makeTokenInvalid(basicAuth);
  if (!isBasic) return credentials;
  const [, password] = /^[^:]*:(.*)$/s.exec(Buffer.from(credentials, 'base64').toString()) ?? [];
  if (password === undefined) return makeTokenInvalid(basicAuth);
  return password;
}

const realm = 'realm="workspace-data-api"';

/** Names every accepted scheme (RFC 9110 §11.6.1). */
function makeChallenge(basicAuth: boolean, error = ''): Record<string, string> {
  return { 'WWW-Authenticate': `Bearer ${realm}${error}${basicAuth ? `, Basic ${realm}, charset="UTF-8"` : ''}` };
}

function makeTokenMissing(basicAuth: boolean): Problem {
  return new Problem('token_missing', 'Send a token as Authorization: Bearer …', { headers: makeChallenge(basicAuth) });
}

function makeTokenInvalid(basicAuth: boolean): Problem {
  const headers = makeChallenge(basicAuth, ', error="invalid_token"');
  return new Problem('token_invalid', 'The token is unknown, expired or revoked.', { headers });
}

const withPort = /^\[([^\]]+)\](?::\d+)?$|^(\d+(?:\.\d+){3}):\d+$/;

/** Returns an IPv4 address, or the /64 of an IPv6 address, which one customer holds (RFC 6177). */
export function getAddressKey(ip: string): string {
  const [, inBrackets, beforePort] = withPort.exec(ip) ?? [];
  const [text = ''] = (inBrackets ?? beforePort ?? ip).split('%'); // a zone names an interface of this machine, not the client
  if (!isIPv6(text)) return text;
  const address = ipaddr.process(text);
  if (address.kind() === 'ipv4') return address.toString();
  const groups = (address as IPv6).parts.slice(0, 4).map((group) => group.toString(16));
  return `${groups.join(':')}::/64`;
}
