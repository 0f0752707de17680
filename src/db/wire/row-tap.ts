import { dataRow, messageEnd, Row } from '../row.js';
import type { Wire } from './wire.js';

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
  // Pieces of a message whose end has not arrived; they are joined once, when it is complete.
  let pieces: Buffer[] = [];
  let missing = 0;

  stream.on('data', (piece: Buffer) => {
    if (piece.length < missing) {
      pieces.push(Buffer.from(piece));
      missing -= piece.length;
      return;
    }
    const bytes = pieces.length === 0 ? piece : Buffer.concat([...pieces, piece]);
    message.fields.startPiece(bytes);
    let passed = 0;
    let at = 0;
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
    pieces = at < bytes.length ? [Buffer.from(bytes.subarray(at))] : [];
    missing = at < bytes.length ? end - bytes.length : 0;
  });
}
