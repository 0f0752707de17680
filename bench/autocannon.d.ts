/** The part of autocannon that the load generator uses. */
declare module 'autocannon' {
  interface Request {
    readonly method: 'GET';
    readonly path: string;
  }

  interface Result {
    /** Seconds. */
    readonly duration: number;
    readonly '2xx': number;
    readonly non2xx: number;
    readonly errors: number;
    readonly timeouts: number;
    readonly throughput: { readonly total: number };
    /** Milliseconds. */
    readonly latency: { readonly p50: number; readonly p99: number };
  }

  interface Options {
    readonly url: string;
    readonly connections: number;
    readonly duration: number;
    readonly headers: Readonly<Record<string, string>>;
    readonly setupClient: (client: { setRequests(requests: readonly Request[]): void }) => void;
  }

  export default function autocannon(options: Options): Promise<Result>;
}
