import test from 'ava';
import { Messages } from '../../src/db/wire/messages.js';

/** Type and content of each message, by the lengths in their heads (PostgreSQL 55.7). */
function messagesIn(bytes: Buffer): [string, Buffer][] {
  const found: [string, Buffer][] = [];
  for (let at = 0; at < bytes.length; at += 1 + bytes.readInt32BE(at + 1)) {
    const end = at + 1 + bytes.readInt32BE(at + 1);
    found.push([String.fromCharCode(bytes[at] as number), bytes.subarray(at + 5, end)]);
  }
  return found;
}

test('a statement and values of every length, kind and script are bound as they are', (t) => {
  const values = ['', 'Kœlcel 冷', '𝄞'.repeat(20_000), null, Buffer.from([0, 255, 0])];
  const messages = new Messages();
  messages.parse('name', 'select $1');
  messages.bind('name', values);
  messages.execute();
  messages.sync();
  const [parse, bind, execute, sync, ...others] = messagesIn(messages.bytes);
  t.deepEqual(parse, ['P', Buffer.from('name\0select $1\0\0\0')]);
  t.deepEqual(execute, ['E', Buffer.alloc(5)]);
  t.deepEqual(sync, ['S', Buffer.alloc(0)]);
  t.deepEqual(others, []);
  const [type, content] = bind as [string, Buffer];
  t.is(type, 'B');
  const head = Buffer.from([...Buffer.from('\0name\0'), 0, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 5]);
  t.deepEqual(content.subarray(0, head.length), head);
  let at = head.length;
  for (const value of values) {
    const length = content.readInt32BE(at);
    at += 4;
    t.is(length, value === null ? -1 : Buffer.byteLength(value));
    if (value === null) continue;
    t.deepEqual(content.subarray(at, at + length), Buffer.from(value as string));
    at += length;
  }
  t.deepEqual(content.subarray(at), Buffer.alloc(2));
});
