import { connect, type Socket } from 'node:net';

/** Clients that read a response at a fixed speed. */
export interface SlowClients {
  /** How many connections are still open. */
  alive(): number;
  /** Bytes all of them have read. */
  read(): number;
  stop(): void;
}

/** Starts them. They read in small steps and leave the rest in the socket, so that the sender feels it. */
export function slowClients(url: string, token: string, count: number, bytesPerSecond: number): SlowClients {
  const { hostname, port, pathname, search } = new URL(url);
  const stepMs = 100;
  let total = 0;
  const sockets = new Set<Socket>();
  const timers: NodeJS.Timeout[] = [];
  for (let n = 0; n < count; n++) {
    const socket = connect({ port: Number(port), host: hostname, highWaterMark: 4096 } as never, () => {
      socket.write(`GET ${pathname}${search} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n\r\n`);
    });
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => sockets.delete(socket));
    let owed = 0;
    const step = (): void => {
      owed += (bytesPerSecond * stepMs) / 1000;
      while (owed > 0) {
        const bytes = socket.read() as Buffer | null;
        if (bytes === null) break;
        owed -= bytes.length;
        total += bytes.length;
      }
    };
    timers.push(setInterval(step, stepMs));
  }
  return {
    alive: () => sockets.size,
    read: () => total,
    stop: () => {
      for (const timer of timers) clearInterval(timer);
      for (const socket of sockets) socket.destroy();
    },
  };
}
