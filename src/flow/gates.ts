import { Problem } from '../errors.js';
import type { Observe, ShedBound } from '../events.js';
import { Gate, type Release } from './gate.js';
import type { Limiter } from './rate-limiter.js';

/** The bounds that an operator sets. */
export interface GateSettings {
  readonly largePagesPerToken: number;
  readonly largePagesPerWorkspace: number;
  /** How long a request waits at a gate. */
  readonly queueWaitMs: number;
}

/**
 * Look-ups of unknown tokens that run, and that wait: a flood of them leaves the pool to known tokens, and the addresses have
 * their turns.
 */
const [running, waiting] = [8, 248];

/** The gates of a gateway. Those of statements are the pools' own (postgres/connection-pool), that of connections the listener's (http/server). */
export interface Gates {
  /** Look-ups of unknown tokens; the lanes are the clients' addresses. */
  readonly unknownTokens: Gate;
  /** Number of large pages under way. */
  readonly largePages: () => number;
  /** Counts a large page of a token and a workspace. Each takes statements, and memory for as long as its client reads: without a bound a single client could take them all. */
  readonly enterLargePage: (token: string, workspace: string) => Promise<Release>;
}

/** Makes the gates; a request that they refuse is a Problem `overloaded`, and an event. */
export function gatesOf(settings: GateSettings, observe: Observe): Gates {
  const gate = (bound: ShedBound, share: number, detail: string, queueMax = Number.POSITIVE_INFINITY): Gate =>
    new Gate({
      share: () => share,
      queueMax,
      refusal: () => {
        observe({ type: 'request_shed', bound });
        return new Problem('overloaded', detail);
      },
    });
  const tooMany = 'Too many large pages are under way; read fewer at a time.';
  const { largePagesPerToken, largePagesPerWorkspace, queueWaitMs } = settings;
  const ofToken = gate('large_pages_per_token', largePagesPerToken, tooMany);
  const ofWorkspace = gate('large_pages_per_workspace', largePagesPerWorkspace, tooMany);
  return {
    unknownTokens: gate('token_look_ups', running, 'Too many unknown tokens are being looked up.', waiting),
    largePages: () => ofWorkspace.held,
    enterLargePage: async (token, workspace) => {
      const deadlineMs = performance.now() + queueWaitMs;
      const leaveToken = await ofToken.enter(token, { waitMs: queueWaitMs });
      try {
        const leaveWorkspace = await ofWorkspace.enter(workspace, { waitMs: deadlineMs - performance.now() });
        return () => {
          leaveWorkspace();
          leaveToken();
        };
      } catch (error) {
        leaveToken();
        throw error;
      }
    },
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
  /** Requests of a client address that need no token. */
  readonly public: Limiter;
}

/** The bounds that an operator sets, requests per minute. */
interface LimitSettings {
  readonly rateLimitPerMinute: number;
  readonly writesPerMinute: number;
  readonly authFailuresPerMinute: number;
  readonly publicRequestsPerMinute: number;
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
    public: peers.limiter('public', settings.publicRequestsPerMinute),
  };
}
