import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import test from 'ava';
import fc from 'fast-check';
import { Row, type TextRow } from '../../src/db/row.js';
import { tapRows } from '../../src/db/wire/row-tap.js';
import { messageOf, rowMessage } from '../support/row-message.js';

type Message = { readonly type: 'D'; readonly texts: TextRow } | { readonly type: 'C' | 'Z'; readonly body: Buffer };

function encoded(message: Message): Buffer {
  return message.type === 'D' ? rowMessage(message.texts) : messageOf(message.type, message.body);
}

const text = fc.option(fc.string({ unit: 'binary', maxLength: 40 }));
const message: fc.Arbitrary<Message> = fc.oneof(
  fc.record({ type: fc.constant('D' as const), texts: fc.array(text, { maxLength: 40 }) }),
  fc.record({
    type: fc.constantFrom('C' as const, 'Z' as const),
    body: fc.uint8Array({ maxLength: 30 }).map(Buffer.from),
  }),
);

test('rows are taken out and all else is passed on in order, wherever the bytes are cut, out of a buffer that is used again', (t) => {
  fc.assert(
    fc.property(fc.array(message), fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 1 }), (messages, cuts) => {
      const stream = new EventEmitter() as Socket;
      const connection = Object.assign(new EventEmitter(), { stream });
      const seen: (TextRow | Buffer)[] = [];
      stream.on('data', (bytes: Buffer) => {
        if (Buffer.isBuffer(seen.at(-1))) seen.push(Buffer.concat([seen.pop() as Buffer, bytes]));
        else seen.push(Buffer.from(bytes));
      });
      connection.on('dataRow', ({ fields }: { fields: Row }) => seen.push(fields.texts()));
      tapRows(connection);

      const buffer = Buffer.alloc(60);
      let rest = Buffer.concat(messages.map(encoded));
      for (let i = 0; rest.length > 0; i++) {
        const size = cuts[i % cuts.length] as number;
        stream.emit('data', buffer.subarray(0, rest.copy(buffer, 0, 0, size)));
        buffer.fill(0xff);
        rest = rest.subarray(size);
      }

      const expected: (TextRow | Buffer)[] = [];
      for (const each of messages) {
        if (each.type === 'D') expected.push(each.texts);
        else if (Buffer.isBuffer(expected.at(-1)))
          expected.push(Buffer.concat([expected.pop() as Buffer, encoded(each)]));
        else expected.push(encoded(each));
      }
      t.deepEqual(seen, expected);
    }),
  );
});

test('a row of texts gives the texts back', (t) => {
  fc.assert(
    fc.property(fc.array(text, { maxLength: 40 }), (texts) => {
      t.deepEqual(Row.of(texts).texts(), texts);
    }),
  );
});
