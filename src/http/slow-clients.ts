import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Observe } from '../events.js';

/** Bounds of slow clients: a response must be taken at this speed, measured over this time. */
export interface SlowClientBounds {
  readonly minBytesPerSecond: number;
  readonly slowClientMs: number;
}

/** Since when a socket has had bytes that its client did not take, and how many it had taken by then. */
interface Progress {
  sinceMs: number;
  taken: number;
}

/** How often progress is looked at, per judged period. */
const checksPerWindow = 6;

/**
 * Destroys connections whose client takes a response slower than minBytesPerSecond over slowClientMs. Looked at per
 * connection and from outside, so that it covers every response and costs a request nothing. A client that has taken
 * all there is, and waits for us, is not slow.
 */
export function endSlowClients(
  server: Server,
  { minBytesPerSecond, slowClientMs }: SlowClientBounds,
  observe: Observe,
): void {
  const sockets = new Map<Socket, Progress>();
  server.on('connection', (socket: Socket) => {
    sockets.set(socket, { sinceMs: performance.now(), taken: 0 });
    socket.once('close', () => sockets.delete(socket));
  });
  const look = (): void => {
    const nowMs = performance.now();
    for (const [socket, progress] of sockets) {
      const taken = socket.bytesWritten - socket.writableLength;
      const elapsedMs = nowMs - progress.sinceMs;
      const owedBytes = (minBytesPerSecond * slowClientMs) / 1000;
      if (socket.writableLength === 0 || taken - progress.taken >= owedBytes) {
        progress.sinceMs = nowMs;
        progress.taken = taken;
      } else if (elapsedMs >= slowClientMs) {
        observe({ type: 'client_too_slow', bytesPerSecond: ((taken - progress.taken) / elapsedMs) * 1000 });
        socket.destroy();
      }
    }
  };
  const timer = setInterval(look, slowClientMs / checksPerWindow).unref();
  server.on('close', () => clearInterval(timer));
}
