import { Problem, type ShedBound } from '../errors.js';
import { Gate } from './gate.js';
import type { Limiter } from './rate-limiter.js';

/** The bounds that an operator sets. */
interface GateSettings {
  readonly largePagesPerToken: number;
  readonly largePagesPerWorkspace: number;
}

/**
 * Look-ups of unknown tokens that run, and that wait: a flood of them leaves the pool to known tokens, and the addresses have
 * their turns.
 */
const [running, waiting] = [8, 248];

/** The gates of a gateway. Those of statements are the pools' own (postgres/connection-pool), that of connections the listener's (http/server). */
export interface Gates {
  /** Look-ups of unknown tokens, all under one key; the lanes are the clients' addresses. */
  readonly unknownTokens: Gate;
  /** Large pages of each token and each workspace. Each takes statements, and memory for as long as its client reads: without a bound a single client could take them all. */
  readonly largePages: Gate;
}

/** Makes the gates; a request that they refuse is a Problem `overloaded`. */
export function gatesOf({ largePagesPerToken, largePagesPerWorkspace }: GateSettings): Gates {
  const refusing = (bound: ShedBound, detail: string) => () => new Problem('overloaded', detail, { bound });
  return {
    unknownTokens: new Gate({
      share: () => running,
      queueMax: waiting,
      refusal: refusing('token_look_ups', 'Too many unknown tokens are being looked up.'),
    }),
    largePages: new Gate({
      share: (key) => (key.startsWith('workspace') ? largePagesPerWorkspace : largePagesPerToken),
      refusal: refusing('large_pages', 'Too many large pages are under way; read fewer at a time.'),
    }),
  };
}

/** The bounds of requests in a minute. */
export interface Limits {
  /** Requests of a token, over all gateways. */
  readonly token: Limiter;
  /** Writes of a token, which count as requests as well; null unless the operator sets it. */
  readonly write: Limiter | null;
  /** Failed authentications of a client address, and of a refused token that is repeated. */
  readonly address: Limiter;
  /** Look-ups of unknown tokens of a client address whose failed authentications are used up. */
  readonly lookUp: Limiter;
  /** Requests of a client address that need no token: documents, OPTIONS, and those without a route. */
  readonly public: Limiter;
}

/** The bounds that an operator sets, requests per minute. */
interface LimitSettings {
  readonly rateLimitPerMinute: number;
  readonly writesPerMinute: number;
  readonly authFailuresPerMinute: number;
  readonly publicRequestsPerMinute: number;
  readonly lookUpsPerMinute: number;
}

/** Makes the limiters; `peers` counts the requests of all gateways together. */
export function limitsOf(
  settings: LimitSettings,
  peers: { readonly limiter: (name: string, quota: number) => Limiter },
): Limits {
  return {
    token: peers.limiter('token', settings.rateLimitPerMinute),
    write: settings.writesPerMinute === 0 ? null : peers.limiter('write', settings.writesPerMinute),
    address: peers.limiter('address', settings.authFailuresPerMinute),
    lookUp: peers.limiter('look_up', settings.lookUpsPerMinute),
    public: peers.limiter('public', settings.publicRequestsPerMinute),
  };
}
