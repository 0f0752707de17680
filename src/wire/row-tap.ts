import { Socket, type SocketConstructorOpts } from 'node:net';
import { dataRow, headerBytes, messageEnd, Row, type WordSource, wordsOf } from '../postgres/row.js';
import type { Wire } from './wire.js';

/** Room for a message in parts at first, and the most that is kept for the next one. */
const partBytes = { atFirst: 1024, kept: 65_536 };

/**
 * Takes rows out of the bytes that PostgreSQL sends before pg parses them, and gives them to the running query as `Row`: in
 * lists, the strings that pg makes were most of a row's cost. All other messages go to pg unchanged (PostgreSQL 55.2: each
 * begins with a type byte and a length). Keeps no bytes of a `data` event without copying them. Must be called on an idle connection.
 */
export function tapRows(connection: Pick<Wire, 'stream' | 'emit'>): void {
  const { stream } = connection;
  const [toPg, ...others] = stream.listeners('data') as ((bytes: Buffer) => void)[];
  if (toPg === undefined || others.length > 0) throw new Error('pg does not read its connection by one data listener');
  stream.off('data', toPg);
  const message = { fields: new Row() };
  const parts = new MessageInParts();

  /** Hands on the whole messages from `start` on; returns the position behind them. */
  const handOn = (bytes: Buffer, start: number): number => {
    message.fields.startPiece(bytes);
    let passed = start;
    let at = start;
    let end = messageEnd(message.fields, at);
    while (end <= bytes.length) {
      if (bytes[at] === dataRow) {
        if (passed < at) toPg.call(stream, bytes.subarray(passed, at));
        message.fields.read(at);
        connection.emit('dataRow', message);
        passed = end;
      }
      at = end;
      end = messageEnd(message.fields, at);
    }
    if (passed < at) toPg.call(stream, bytes.subarray(passed, at));
    return at;
  };

  stream.on('data', (piece: Buffer) => {
    let start = 0;
    if (!parts.isEmpty) {
      start = parts.complete(piece);
      if (start < 0) return;
      handOn(parts.take(), 0);
    }
    const behind = handOn(piece, start);
    if (behind < piece.length) parts.begin(piece.subarray(behind));
  });
}

/**
 * A message that arrives in parts: nearly every read ends within a row. Its parts are joined in a buffer that is used again. When they were
 * joined with the whole of the next read, each read took a new buffer of its size.
 */
class MessageInParts implements WordSource {
  bytes = Buffer.allocUnsafeSlow(partBytes.atFirst);
  words = wordsOf(this.bytes);
  #length = 0;

  get isEmpty(): boolean {
    return this.#length === 0;
  }

  begin(part: Buffer): void {
    this.#add(part, 0, part.length);
  }

  /** Adds the bytes that the message lacks; returns the position behind them, or -1 when its end has not arrived. */
  complete(piece: Buffer): number {
    let at = 0;
    while (this.#missing > 0) {
      if (at === piece.length) return -1;
      const end = Math.min(piece.length, at + this.#missing);
      this.#add(piece, at, end);
      at = end;
    }
    return at;
  }

  /** The message; valid until the next one begins. */
  take(): Buffer {
    const whole = this.bytes.subarray(0, this.#length);
    this.#length = 0;
    if (this.bytes.length > partBytes.kept) this.#replace(partBytes.atFirst);
    return whole;
  }

  /** Bytes up to the end of the message, or of its header while that is not whole. */
  get #missing(): number {
    return (this.#length < headerBytes ? headerBytes : messageEnd(this, 0)) - this.#length;
  }

  #add(piece: Buffer, start: number, end: number): void {
    const { bytes } = this;
    const needed = this.#length + end - start;
    if (needed > bytes.length) {
      this.#replace(Math.max(needed, bytes.length * 2));
      bytes.copy(this.bytes, 0, 0, this.#length);
    }
    piece.copy(this.bytes, this.#length, start, end);
    this.#length = needed;
  }

  #replace(size: number): void {
    this.bytes = Buffer.allocUnsafeSlow(size);
    this.words = wordsOf(this.bytes);
  }
}

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
