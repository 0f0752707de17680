import { Problem, type ShedBound } from '../errors.js';
import { Gate } from './gate.js';
import type { RateLimiter } from './rate-limiter.js';

type GateSettings = Readonly<Record<'largePagesPerToken' | 'largePagesPerWorkspace' | 'queueMax', number>>;

/** Bounds that leave the pool to known tokens during a flood of unknown ones. */
const [lookUpsMax, queuedLookUpsMax] = [8, 248];

export type Gates = ReturnType<typeof makeGates>;

/** Refuses a request by a Problem `overloaded`. */
export function makeGates({ largePagesPerToken, largePagesPerWorkspace, queueMax }: GateSettings) {
  const makeRefuser = (bound: ShedBound, detail: string) => () => new Problem('overloaded', detail, { bound });
  /** A page holds statements and memory while its client reads, so it takes a unit of its token and one of its workspace. */
  const largePages = new Gate({
    share: (key) => (key.startsWith('workspace') ? largePagesPerWorkspace : largePagesPerToken),
    queueMax,
    makeRefusal: makeRefuser('large_pages', 'Too many large pages are under way; read fewer at a time.'),
  });
  return {
    /** All unknown tokens share one key. Each client address has a lane. */
    unknownTokens: new Gate({
      share: () => lookUpsMax,
      queueMax: queuedLookUpsMax,
      makeRefusal: makeRefuser('token_look_ups', 'Too many unknown tokens are being looked up.'),
    }),
    largePages,
    countLargePages: () => largePages.held / 2,
  };
}

type Quota = 'rateLimit' | 'writes' | 'authFailures' | 'publicRequests' | 'lookUps';
type LimitSettings = Readonly<Record<`${Quota}PerMinute`, number>>;
type LimiterSource = { readonly makeLimiter: (name: string, quota: number) => RateLimiter };

export type Limits = ReturnType<typeof makeLimits>;

export function makeLimits(settings: LimitSettings, { makeLimiter }: LimiterSource) {
  return {
    token: makeLimiter('token', settings.rateLimitPerMinute),
    /** Null unless the operator sets the quota. A write also counts as a request of the token. */
    write: settings.writesPerMinute === 0 ? null : makeLimiter('write', settings.writesPerMinute),
    /** Failed authentications of an address, or of a refused token that is repeated. */
    address: makeLimiter('address', settings.authFailuresPerMinute),
    /** Look-ups of unknown tokens by an address whose failed authentications are used up. */
    lookUp: makeLimiter('look_up', settings.lookUpsPerMinute),
    public: makeLimiter('public', settings.publicRequestsPerMinute),
  };
}
