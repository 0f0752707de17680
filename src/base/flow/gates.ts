import { Problem, type ShedBound } from '../errors.js';
import { Gate } from './gate.js';
import type { Limiter } from './rate-limiter.js';

type GateSettings = Readonly<Record<'largePagesPerToken' | 'largePagesPerWorkspace', number>>;

/** A flood of unknown tokens leaves the pool to known ones. */
const [lookUpsMax, queuedLookUpsMax] = [8, 248];

export interface Gates {
  /** All share one key; the lanes are client addresses. */
  readonly unknownTokens: Gate;
  /** The key is a token and workspace: each page holds statements and memory while its client reads. */
  readonly largePages: Gate;
}

/** A refused request is a Problem `overloaded`. */
export function makeGates({ largePagesPerToken, largePagesPerWorkspace }: GateSettings): Gates {
  const refusing = (bound: ShedBound, detail: string) => () => new Problem('overloaded', detail, { bound });
  return {
    unknownTokens: new Gate({
      share: () => lookUpsMax,
      queueMax: queuedLookUpsMax,
      refusal: refusing('token_look_ups', 'Too many unknown tokens are being looked up.'),
    }),
    largePages: new Gate({
      share: (key) => (key.startsWith('workspace') ? largePagesPerWorkspace : largePagesPerToken),
      refusal: refusing('large_pages', 'Too many large pages are under way; read fewer at a time.'),
    }),
  };
}

export interface Limits {
  readonly token: Limiter;
  /** Writes count as requests as well; null unless the operator sets it. */
  readonly write: Limiter | null;
  /** It counts failed authentications of an address, or of a refused token that is repeated. */
  readonly address: Limiter;
  /** Look-ups of unknown tokens of an address whose failed authentications are used up. */
  readonly lookUp: Limiter;
  readonly public: Limiter;
}

type Quota = 'rateLimit' | 'writes' | 'authFailures' | 'publicRequests' | 'lookUps';
type LimitSettings = Readonly<Record<`${Quota}PerMinute`, number>>;
type LimiterSource = { readonly limiter: (name: string, quota: number) => Limiter };

export function makeLimits(settings: LimitSettings, peers: LimiterSource): Limits {
  return {
    token: peers.limiter('token', settings.rateLimitPerMinute),
    write: settings.writesPerMinute === 0 ? null : peers.limiter('write', settings.writesPerMinute),
    address: peers.limiter('address', settings.authFailuresPerMinute),
    lookUp: peers.limiter('look_up', settings.lookUpsPerMinute),
    public: peers.limiter('public', settings.publicRequestsPerMinute),
  };
}
