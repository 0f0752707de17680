import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export interface WireProxy {
  /** It leads through the proxy. */
  readonly url: string;
  close(): Promise<void>;
}

/** Listens on 127.0.0.1: `wire` joins the socket of each client to one of the server, and both end together. */
export async function wireProxy(server: string, wire: (near: Socket, far: Socket) => void): Promise<WireProxy> {
  const sockets = new Set<Socket>();
  const url = new URL(server);
  const { hostname, port } = url;
  const listener = createServer((near) => {
    const far = connect(Number(port), hostname);
    const end = (): void => [near, far].forEach((socket) => void socket.destroy());
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.setNoDelay(true);
      socket.on('error', end).on('close', end);
      socket.on('close', () => sockets.delete(socket));
    }
    wire(near, far);
  });
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
  url.port = String((listener.address() as AddressInfo).port);
  return {
    url: url.href,
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => listener.close(resolve));
    },
  };
}
