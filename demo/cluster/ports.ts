import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

/**
 * A free port on 127.0.0.1 below every system's range for outgoing connections. In that range a client
 * of a stopped server may get the same port as its source port, and so connect to itself.
 */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < 100; attempt++) {
    const port = randomInt(15_000, 32_000);
    if (await isFree(port)) return port;
  }
  throw new Error('No free port on 127.0.0.1 between 15000 and 32000.');
}

function isFree(port: number): Promise<boolean> {
  const server = createServer();
  return new Promise((resolve) => {
    server.once('error', () => resolve(false));
    server.listen({ host: '127.0.0.1', port, exclusive: true }, () => server.close(() => resolve(true)));
  });
}
