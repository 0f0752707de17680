import { Socket, type SocketConstructorOpts } from 'node:net';
import { dataRow, findMessageEnd, Row } from '../row.js';
import type { Wire } from './wire.js';

/** First size of a buffer, and the most that it keeps after a larger message. */
const roomBytes = { atFirst: 1024, kept: 131_072 };

/**
 * Takes rows out of the bytes before pg parses them: pg's strings were most of a row's cost. Other messages go to pg unchanged (PostgreSQL
 * 55.2). Nearly every read ends within a row, so reads are copied into one room. Must be called on an idle connection.
 */
export function tapRows(connection: Pick<Wire, 'stream' | 'emit'>): void {
  const { stream } = connection;
  const [toPg, ...others] = stream.listeners('data') as ((bytes: Buffer) => void)[];
  if (toPg === undefined || others.length > 0) throw new Error('pg does not read its connection by one data listener');
  stream.off('data', toPg);
  const message = { fields: new Row() };
  let room = Buffer.allocUnsafeSlow(roomBytes.atFirst);
  let filled = 0;

  const moveTo = (start: number, size: number): void => {
    const to = size === room.length ? room : Buffer.allocUnsafeSlow(size);
    filled = room.copy(to, 0, start, filled);
    room = to;
  };

  stream.on('data', (piece: Buffer) => {
    const needed = filled + piece.length;
    if (needed > room.length) moveTo(0, Math.max(needed, room.length * 2));
    filled += piece.copy(room, filled);
    const bytes = room.subarray(0, filled);
    message.fields.startPiece(bytes);
    let passed = 0;
    let at = 0;
    let end = findMessageEnd(message.fields, at);
    while (end <= filled) {
      if (bytes[at] === dataRow) {
        if (passed < at) toPg.call(stream, bytes.subarray(passed, at));
        message.fields.read(at);
        connection.emit('dataRow', message);
        passed = end;
      }
      at = end;
      end = findMessageEnd(message.fields, at);
    }
    if (passed < at) toPg.call(stream, bytes.subarray(passed, at));
    if (at > 0) moveTo(at, Math.max(Math.min(room.length, roomBytes.kept), filled - at));
  });
}

/** A buffer of four times this size makes a page a tenth faster, but a single record beside it waits half as long again. */
const readBytesMax = 16_384;

export interface ReusingSocket {
  readonly socket: Socket;
  /** Ends the copying: from then on a `data` event has the buffer itself, valid until its listeners return. */
  readonly reuse: () => void;
}

/**
 * Reads into one buffer: with new ones V8 collects its whole heap for every 10 MB. Until `reuse` each event has a copy, because pg keeps
 * the bytes of the login. `pause` acts at once; TLS has buffers of its own.
 */
export function makeReusingSocket(): ReusingSocket {
  let isReusing = false;
  const buffer = Buffer.allocUnsafeSlow(readBytesMax);
  const callback = (length: number): boolean => {
    const bytes = buffer.subarray(0, length);
    socket.emit('data', isReusing ? bytes : Buffer.from(bytes));
    return true; // false would pause the socket
  };
  // Node's constructor has the option since 12.10; its type lacks it.
  const socket = new Socket({ onread: { buffer, callback } } as SocketConstructorOpts);
  return {
    socket,
    reuse: () => {
      isReusing = true;
    },
  };
}
