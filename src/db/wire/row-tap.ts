import type { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import { Row } from '../row.js';

const dataRow = 0x44; // "D"
const headerBytes = 5; // type, and the length that counts itself but not the type

/**
 * Takes the rows out of what PostgreSQL sends before pg's own parser sees it, and has pg give them to the running query as
 * `Row` instead of arrays of strings: for lists, making those strings was most of what a row cost. All other messages go to
 * pg as they came (PostgreSQL 55.2: a type byte and a length in front of each). To be called on an idle connection.
 */
export function tapRows(connection: EventEmitter & { readonly stream: Socket }): void {
  const { stream } = connection;
  const [toPg] = stream.listeners('data') as [(bytes: Buffer) => void];
  stream.off('data', toPg);
  const message = { fields: new Row() };
  // Messages whose end has not arrived; a large one is joined once, not with every piece of it.
  let pieces: Buffer[] = [];
  let missing = 0;

  stream.on('data', (piece: Buffer) => {
    if (piece.length < missing) {
      pieces.push(piece);
      missing -= piece.length;
      return;
    }
    const bytes = pieces.length === 0 ? piece : Buffer.concat([...pieces, piece]);
    let passed = 0;
    let at = 0;
    let end = messageEnd(bytes, at);
    while (end <= bytes.length) {
      if (bytes[at] === dataRow) {
        if (passed < at) toPg.call(stream, bytes.subarray(passed, at));
        message.fields.read(bytes, at + headerBytes);
        connection.emit('dataRow', message);
        passed = end;
      }
      at = end;
      end = messageEnd(bytes, at);
    }
    if (passed < at) toPg.call(stream, bytes.subarray(passed, at));
    pieces = at < bytes.length ? [bytes.subarray(at)] : [];
    missing = at < bytes.length ? end - bytes.length : 0;
  });
}

/** Where the message at `at` ends; without its length, one byte beyond what is there. */
function messageEnd(bytes: Buffer, at: number): number {
  return at + headerBytes > bytes.length ? bytes.length + 1 : at + 1 + bytes.readUInt32BE(at + 1);
}
