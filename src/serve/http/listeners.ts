import { once } from 'node:events';
import type { Server } from 'node:http';
import { type AddressInfo, Server as NetServer, type Socket } from 'node:net';
import { StartRefused } from '../../base/errors.js';

/** Open connections per server, because Node forgets a connection of CONNECT. */
const connections = new WeakMap<Server, Set<Socket>>();

export function countConnections(server: Server): Promise<number> {
  return new Promise((resolve) => server.getConnections((_, count) => resolve(count)));
}

const listenFaults: Readonly<Record<string, string>> = {
  EADDRINUSE: 'another process, or the other listener, has the port',
  EACCES: 'ports below 1024 need a privilege of the system',
  EADDRNOTAVAIL: 'this machine does not have the address',
  ENOTFOUND: 'it is no address, and no name of a host',
  EAFNOSUPPORT: 'this machine has no addresses of that kind',
};

/** Length of the kernel's queue (listen(2)): with Node's 511 it dropped a burst of clients for a second. */
const waitingMax = 4096;

/** Returns the origin, such as http://127.0.0.1:8080. Throws StartRefused. */
export async function listen(server: Server, host: string, port: number): Promise<string> {
  const open = new Set<Socket>();
  connections.set(server, open);
  server.on('connection', (socket) => {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
  });
  server.listen({ port, host, backlog: waitingMax });
  await once(server, 'listening').catch(({ code = '' }: NodeJS.ErrnoException) => {
    const words = listenFaults[code];
    throw new StartRefused(`Cannot listen on ${host}:${port}: ${words ? `${words} (${code})` : code}.`);
  });
  const address = server.address() as AddressInfo;
  const name = address.family === 'IPv6' ? `[${address.address}]` : address.address;
  return `http://${name}:${address.port}`;
}

export async function close(server: Server): Promise<void> {
  breakConnections(server);
  await new Promise((resolve) => server.close(resolve));
}

/** Idle connections stay open this long while a listener drains: a request on its way gets a response. */
const idleMs = 1000;

/** Accepts no connections, waits for running responses, and breaks off the others after `drainMs`. */
export async function drain(server: Server, drainMs: number): Promise<void> {
  server.prependListener('request', (_, response) => {
    response.shouldKeepAlive = false;
  });
  const startedMs = performance.now();
  const deadline = setTimeout(() => breakConnections(server), drainMs);
  const idle = setInterval(() => {
    if (performance.now() - startedMs > idleMs && !isSending(server)) server.closeIdleConnections();
  }, 50);
  // close() of an HTTP server would close idle connections at once.
  await new Promise<void>((resolve) => NetServer.prototype.close.call(server, () => resolve()));
  clearTimeout(deadline);
  clearInterval(idle);
  server.close(() => undefined); // ends Node's timer for late requests
}

/** Node takes a connection for idle as soon as the response is complete, and would cut it off. */
function isSending(server: Server): boolean {
  return listSockets(server).some(({ writableLength }) => writableLength > 0);
}

function breakConnections(server: Server): void {
  for (const socket of listSockets(server)) socket.resetAndDestroy(); // a broken page must not look complete
}

function listSockets(server: Server): Socket[] {
  return [...(connections.get(server) ?? [])];
}
