import type { IncomingMessage } from 'node:http';
import { splitList } from '../../base/members.js';

/** Headers that a page of another origin may read, beside those that every page may. */
export const exposedHeaders =
  'Accept-Patch, Allow, API-Version, Content-Encoding, Data-As-Of, Deprecation, Dry-Run, ETag, Idempotent-Replayed, Link, Location, RateLimit, RateLimit-Policy, Retry-After, Server-Timing, Sunset, WWW-Authenticate, X-Request-Id';

const sentHeaders = 'Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, X-Request-Id';

/** Chromium asks again after two hours, Firefox after a day. */
const preflightHeaders = Object.entries({
  'Access-Control-Allow-Methods': 'GET, HEAD, PATCH, POST',
  'Access-Control-Allow-Headers': sentHeaders,
  'Access-Control-Max-Age': '86400',
}).flat();

export type CrossOrigin = NonNullable<ReturnType<typeof makeCrossOrigin>>;

/** Lets pages of these exact origins send a token, but no credentials of the browser. Null: no page may. */
export function makeCrossOrigin(setting: string) {
  const origins = new Set(splitList(setting));
  if (origins.size === 0) return null;
  const isListed = ({ headers }: IncomingMessage): boolean => origins.has(headers.origin ?? '');
  /** A preflight needs no token and no limit, because a refusal would cost as much as the answer. */
  const isPreflight = (request: IncomingMessage): boolean =>
    request.method === 'OPTIONS' && 'access-control-request-method' in request.headers && isListed(request);
  return {
    isPreflight,
    /** Lists names and values in turns. */
    headersFor: (request: IncomingMessage): readonly string[] => {
      const varies = ['Vary', 'Origin']; // also for other origins: a cache must not give the response for one to another
      if (!isListed(request)) return varies;
      const grants = isPreflight(request) ? preflightHeaders : ['Access-Control-Expose-Headers', exposedHeaders];
      return [...varies, 'Access-Control-Allow-Origin', request.headers.origin as string, ...grants];
    },
  };
}
