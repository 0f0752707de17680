import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Observe } from '../events.js';

/** The speed at which a client must read a response, and the time over which it is measured. */
export interface SlowClientBounds {
  readonly minBytesPerSecond: number;
  readonly slowClientMs: number;
}

/** The start of a socket's current measurement, and the bytes that its client had read by then. */
interface Progress {
  sinceMs: number;
  bytesRead: number;
}

/** Number of checks within slowClientMs. */
const checksPerWindow = 6;

/**
 * Destroys connections whose client reads a response slower than minBytesPerSecond over slowClientMs. A timer checks every
 * connection, so that every response is covered and requests do no work for it. A client that has read all bytes sent so far
 * is not slow.
 */
export function endSlowClients(
  server: Server,
  { minBytesPerSecond, slowClientMs }: SlowClientBounds,
  observe: Observe,
): void {
  const sockets = new Map<Socket, Progress>();
  server.on('connection', (socket: Socket) => {
    sockets.set(socket, { sinceMs: performance.now(), bytesRead: 0 });
    socket.once('close', () => sockets.delete(socket));
  });
  const check = (): void => {
    const nowMs = performance.now();
    for (const [socket, progress] of sockets) {
      const bytesRead = socket.bytesWritten - socket.writableLength;
      const elapsedMs = nowMs - progress.sinceMs;
      const bytesMin = (minBytesPerSecond * slowClientMs) / 1000;
      if (socket.writableLength === 0 || bytesRead - progress.bytesRead >= bytesMin) {
        Object.assign(progress, { sinceMs: nowMs, bytesRead });
      } else if (elapsedMs >= slowClientMs) {
        observe({ type: 'client_too_slow', bytesPerSecond: ((bytesRead - progress.bytesRead) / elapsedMs) * 1000 });
        socket.destroy();
      }
    }
  };
  const timer = setInterval(check, slowClientMs / checksPerWindow).unref();
  server.on('close', () => clearInterval(timer));
}
