import { type AddressInfo, connect, createServer } from 'node:net';

export interface BreakingProxy {
  readonly port: number;
  readonly broken: number;
  close(): void;
}

/** Breaks the connection on which the given number of bytes comes through; the numbers count the bytes of all responses so far. */
export async function breakingProxy(targetPort: number, breaks: readonly number[]): Promise<BreakingProxy> {
  let bytes = 0;
  let broken = 0;
  const server = createServer((near) => {
    const far = connect(targetPort, '127.0.0.1');
    const end = (): void => [near, far].forEach((socket) => void socket.destroy());
    for (const socket of [near, far]) socket.on('error', end).on('close', end);
    near.on('data', (sent) => far.write(sent));
    far.on('data', (received) => {
      bytes += received.length;
      if (bytes < (breaks[broken] ?? Number.POSITIVE_INFINITY)) {
        near.write(received);
        return;
      }
      broken++;
      near.resetAndDestroy();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    get broken() {
      return broken;
    },
    close: () => void server.close(),
  };
}
