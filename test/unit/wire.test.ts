import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import test from 'ava';
import fc from 'fast-check';
import pg from 'pg';
import { Row, type TextRow } from '../../src/postgres/row.js';
import { prepareSql } from '../../src/postgres/statement.js';
import { RoundTrip, StatementMixedUp, StatementMoved } from '../../src/postgres/wire/queries.js';
import { tapRows } from '../../src/postgres/wire/row-tap.js';
import type { Wire } from '../../src/postgres/wire/wire.js';
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
      connection.on('dataRow', ({ fields }: { fields: Row }) => seen.push(fields.getTexts()));
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
      t.deepEqual(Row.make(texts).getTexts(), texts);
    }),
  );
});

test('a connection keeps 100 statements, 12 of a resource: the least recently used one is closed, and prepared again at its next use', (t) => {
  for (const [max, label] of [
    [100, (number: number) => `s${number}.rows`],
    [12, (number: number) => `${'long'.repeat(10)}.${number}`],
  ] as const) {
    const sent: string[] = [];
    const wire = wireThat((message) => sent.push(message.replace(/ .*/, '')));
    const run = (number: number): string[] => {
      sent.length = 0;
      const statement = prepareSql(label(number), `select ${number}`);
      new RoundTrip([{ statement, values: [] }], true, () => undefined).prepare(wire);
      return [...sent];
    };
    for (let number = 0; number < max; number++) t.deepEqual(run(number), ['parse', 'bind', 'sync']);
    for (const number of [0, max - 1]) t.deepEqual(run(number), ['bind', 'sync']);
    t.deepEqual(run(max), ['close', 'parse', 'bind', 'sync'], '1 was the least recently used one');
    t.deepEqual(run(0), ['bind', 'sync']);
    t.deepEqual(run(1), ['close', 'parse', 'bind', 'sync'], '2 now');
    t.deepEqual(run(3), ['bind', 'sync']);
    t.deepEqual(run(2), ['close', 'parse', 'bind', 'sync']);
  }
});

test('no statement is sent under the name of another text, and the fault is an error of the gateway', async (t) => {
  const sent: string[] = [];
  const wire = wireThat((message) => sent.push(message));
  const statement = prepareSql('a', 'select 1');
  new RoundTrip([{ statement, values: [] }], true, () => undefined).prepare(wire);
  sent.length = 0;
  const error = await new Promise<Error | null>((resolve) => {
    const other = new RoundTrip([{ statement: { ...statement, text: 'select 2' }, values: [] }], true, resolve);
    other.prepare(wire);
    other.handleReadyForQuery();
  });
  t.regex(error?.message ?? '', /^the statement a_[\w-]{22} has another text$/);
  t.deepEqual(sent, ['sync']);
});

/**
 * Says how the statements of one connection end, each in a round trip, when PostgreSQL answers them with these SQLSTATEs; null completes.
 */
function endsOf(answers: readonly (string | null)[], labels: readonly string[] = answers.map(() => 'a')): string[] {
  const wire = wireThat(() => undefined);
  const ends: string[] = [];
  const trips = labels.map((label) => {
    const parts = [{ statement: prepareSql(label, label), values: [] }];
    const trip = new RoundTrip(parts, true, (error) => ends.push(error === null ? 'completed' : endOf(error)));
    trip.prepare(wire);
    return trip;
  });
  for (const [i, code] of answers.entries())
    if (code === null) {
      trips[i]?.handleCommandComplete({ text: 'SELECT 1' });
      trips[i]?.handleReadyForQuery();
    } else
      trips[i]?.handleError(Object.assign(new pg.DatabaseError('', 0, 'error'), { code, severity: 'ERROR' }), wire);
  return ends;
}

const endOf = (error: Error): string =>
  error instanceof StatementMoved
    ? 'moved'
    : error instanceof StatementMixedUp
      ? 'a pooler'
      : String((error as pg.DatabaseError).code);

test('26000 and 42P05 tell of a pooler only where the connection has met no error before; the others share the cause, or are moved', (t) => {
  t.deepEqual(endsOf(['42P01', '26000', '26000']), ['42P01', '42P01', '42P01']);
  t.deepEqual(endsOf(['55P03', '26000', null]), ['55P03', '55P03', 'completed']);
  t.deepEqual(endsOf([null, '26000', '26000']), ['completed', 'a pooler', 'moved']);
  t.deepEqual(endsOf(['42P05']), ['a pooler']);
  t.deepEqual(endsOf(['42P01', '42P05'], ['a', 'b']), ['42P01', 'moved']);
});

function wireThat(note: (message: string) => void): Wire {
  return {
    parse: ({ name }: { name: string }) => note(`parse ${name}`),
    bind: ({ statement }: { statement: string }) => note(`bind ${statement}`),
    close: ({ name }: { name: string }) => note(`close ${name}`),
    execute: () => undefined,
    sync: () => note('sync'),
  } as unknown as Wire;
}
