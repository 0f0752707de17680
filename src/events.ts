/** Everything worth telling: the log (ops/log) and the metrics (ops/metrics) are its two consumers. No personal data, no token, ever. */
export type Event =
  | {
      readonly type: 'request_finished';
      readonly requestId: string;
      readonly method: string;
      readonly route: string;
      readonly status: number;
      readonly code: string | null;
      readonly durationMs: number;
      readonly complete: boolean;
      readonly tokenId: string | null;
      readonly workspace: string | null;
    }
  | { readonly type: 'request_failed'; readonly requestId: string; readonly error: Error }
  | { readonly type: 'page_broken'; readonly requestId: string; readonly reason: string }
  | { readonly type: 'page_resumed'; readonly resource: string; readonly replica: string }
  | {
      readonly type: 'decode_failed';
      readonly resource: string;
      readonly row: string;
      readonly pointer: string;
      readonly reason: string;
    }
  | { readonly type: 'limit_hit'; readonly limit: 'token' | 'address' }
  | { readonly type: 'request_shed'; readonly bound: ShedBound }
  | { readonly type: 'client_too_slow'; readonly bytesPerSecond: number }
  | { readonly type: 'replica_admitted'; readonly replica: string }
  | { readonly type: 'replica_ejected'; readonly replica: string; readonly reason: string }
  | { readonly type: 'replica_failed'; readonly replica: string; readonly code: string }
  | { readonly type: 'primary_failed'; readonly code: string }
  | { readonly type: 'redis_failed' }
  | { readonly type: 'primary_read' }
  | { readonly type: 'write_finished'; readonly outcome: string }
  | { readonly type: 'crashed'; readonly error: Error }
  | { readonly type: 'started'; readonly url: string; readonly opsUrl: string }
  | { readonly type: 'stopping' };

/** The bound at which a request was turned away with 503 overloaded. */
export type ShedBound = 'connections' | 'large_pages_per_token' | 'large_pages_per_workspace';

/** Takes an event; never throws. */
export type Observe = (event: Event) => void;
