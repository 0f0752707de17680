import { connect, createServer, type Server, type Socket } from 'node:net';
import { freePort } from '../demo/cluster/ports.js';

/** PostgreSQL servers behind ports at which nothing listens until `open`. */
export interface GatedServers {
  /** The URL of a server by its own URL. */
  readonly urlOf: (url: string) => string;
  open(): Promise<void>;
  close(): void;
}

/** Puts each of the servers behind a port of its own, on 127.0.0.1. */
export async function gatedServers(urls: readonly string[]): Promise<GatedServers> {
  const sockets = new Set<Socket>();
  const gates = new Map<string, { readonly server: Server; readonly port: number }>();
  for (const url of urls) {
    const { hostname, port } = new URL(url);
    const server = createServer((near) => {
      const far = connect(Number(port), hostname);
      near.pipe(far).pipe(near);
      for (const socket of [near, far]) sockets.add(socket.on('error', () => {}));
    });
    gates.set(url, { server, port: await freePort() });
  }
  return {
    urlOf: (url) => Object.assign(new URL(url), { hostname: '127.0.0.1', port: String(gates.get(url)?.port) }).href,
    open: async () => {
      for (const { server, port } of gates.values())
        await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
    },
    close: () => {
      for (const { server } of gates.values()) server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
