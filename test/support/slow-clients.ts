import { connect, type Socket } from 'node:net';

export interface SlowClients {
  reading(): number;
  encodings(): Readonly<Record<string, number>>;
  read(): number;
  stop(): void;
}

const stepMs = 100;
/** After a 503 a client asks again: the start of so many large pages at once is over the gateway's bounds. */
const againMs = 300;

export interface SlowClientOptions {
  readonly token: string;
  readonly count: number;
  readonly bytesPerSecond: number;
  readonly encoding: string;
}

export function slowClients(url: string, options: SlowClientOptions): SlowClients {
  const { token, count, bytesPerSecond, encoding } = options;
  const { hostname, port, pathname, search } = new URL(url);
  const sockets = new Map<Socket, string>();
  const timers = new Set<NodeJS.Timeout>();
  let total = 0;
  const start = (): void => {
    const socket = connect({ port: Number(port), host: hostname });
    socket.on('error', () => undefined);
    socket.write(
      `GET ${pathname}${search} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer ${token}\r\nAccept-Encoding: ${encoding}\r\n\r\n`,
    );
    let owed = 0;
    let begun = false;
    const step = setInterval(() => {
      owed += (bytesPerSecond * stepMs) / 1000;
      while (owed > 0) {
        const bytes = socket.read() as Buffer | null;
        if (bytes === null) break;
        owed -= bytes.length;
        total += bytes.length;
        const head = begun ? '' : bytes.toString('latin1');
        if (head.startsWith('HTTP/1.1 200'))
          sockets.set(socket, /^content-encoding: (\w+)/im.exec(head)?.[1] ?? 'identity');
        else if (!begun) timers.add(setTimeout(start, againMs));
        begun = true;
      }
    }, stepMs);
    timers.add(step);
    socket.on('close', () => {
      sockets.delete(socket);
      clearInterval(step);
    });
    stops.push(() => socket.destroy());
  };
  const stops: (() => void)[] = [];
  for (let n = 0; n < count; n++) start();
  return {
    reading: () => sockets.size,
    encodings: () => {
      const counts: Record<string, number> = {};
      for (const used of sockets.values()) counts[used] = (counts[used] ?? 0) + 1;
      return counts;
    },
    read: () => total,
    stop: () => {
      for (const timer of timers) clearTimeout(timer);
      for (const stop of stops) stop();
    },
  };
}
