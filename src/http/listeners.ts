import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { StartRefused } from '../errors.js';

/** Number of open connections. */
export function connectionsOf(server: Server): Promise<number> {
  return new Promise((resolve) => server.getConnections((_, count) => resolve(count)));
}

/** Opens the listener and returns its origin, such as http://127.0.0.1:8080. Throws StartRefused. */
export async function listen(server: Server, host: string, port: number): Promise<string> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) =>
      reject(new StartRefused(`Cannot listen on ${host}:${port}: ${error.code}.`)),
    );
    server.listen(port, host, resolve);
  });
  const address = server.address() as AddressInfo;
  const name = address.family === 'IPv6' ? `[${address.address}]` : address.address;
  return `http://${name}:${address.port}`;
}

/** Closes the listener at once and breaks running responses. */
export async function close(server: Server): Promise<void> {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
}

/** Accepts no new connections, lets running responses end, and breaks those that still run after `drainMs`. */
export async function drain(server: Server, drainMs: number): Promise<void> {
  const deadline = setTimeout(() => server.closeAllConnections(), drainMs);
  const idle = setInterval(() => server.closeIdleConnections(), 50);
  await new Promise((resolve) => server.close(resolve));
  clearTimeout(deadline);
  clearInterval(idle);
}
