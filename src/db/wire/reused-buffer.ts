import { Socket, type SocketConstructorOpts } from 'node:net';

const readBytesMax = 65_536;

/** A socket, and the switch to reading into one buffer. */
export interface ReusingSocket {
  readonly socket: Socket;
  /** From here on a `data` event has the buffer itself, whose bytes are valid until its listeners return. */
  readonly reuse: () => void;
}

/**
 * A socket that reads into the same buffer again and again. Otherwise Node makes a buffer of 64 KB for each read, V8 counts
 * all of them as garbage of its own, and collects its whole heap for every 10 MB that PostgreSQL sends. Until `reuse`
 * each `data` event has a copy, because pg keeps the bytes of the login. A TLS socket on top of it reads into buffers of its own.
 */
export function reusingSocket(): ReusingSocket {
  let isReusing = false;
  const buffer = Buffer.allocUnsafeSlow(readBytesMax);
  const callback = (length: number): boolean => {
    const bytes = buffer.subarray(0, length);
    socket.emit('data', isReusing ? bytes : Buffer.from(bytes));
    return true; // false would pause the socket
  };
  // Node's constructor has the option since 12.10; its type has not.
  const socket = new Socket({ onread: { buffer, callback } } as SocketConstructorOpts);
  return {
    socket,
    reuse: () => {
      isReusing = true;
    },
  };
}
