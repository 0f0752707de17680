import { codeOf, faultsOf } from '../support/lists.js';
import { customerOf } from '../support/primary-side.js';
import { gatewayTest } from '../support/workspace.js';
import { post } from '../support/writes.js';

const test = gatewayTest();
const nested = (depth: number): string => `${'{"a":'.repeat(depth - 1)}{}${'}'.repeat(depth - 1)}`;

/** Bodies that are not what RFC 8259 and RFC 7493 call JSON, and the faults told. */
const malformed: readonly [string, string | Buffer, ...string[]][] = [
  ['nothing', '', ' syntax'],
  ['white space', '  \n', ' syntax'],
  ['text', 'naam=x', ' syntax'],
  ['an unfinished object', '{"naam":"x"', ' syntax'],
  ['a comma too many', '{"naam":"x",}', ' syntax'],
  ['two values', '{} {}', ' syntax'],
  ['a comment', '{} // x', ' syntax'],
  ['white space of Unicode behind it', '{}\u00a0', ' syntax'],
  ['white space of Unicode before it', '\u2003{}', ' syntax'],
  ['a byte order mark', '\ufeff{}', ' syntax'],
  ['single quotes', "{'naam':'x'}", ' syntax'],
  ['a bare name', '{naam:"x"}', ' syntax'],
  ['NaN', '{"bouwjaar":NaN}', ' syntax'],
  ['a number with a leading zero', '{"bouwjaar":02019}', ' syntax'],
  ['a number with a plus', '{"bouwjaar":+2019}', ' syntax'],
  ['a hexadecimal number', '{"bouwjaar":0x7e3}', ' syntax'],
  ['a raw control character', '{"naam":"a\tb"}', ' syntax'],
  ['an unknown escape', '{"naam":"\\x41"}', ' syntax'],
  ['half an escape', '{"naam":"\\u00"}', ' syntax'],
  ['invalid UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]), ' invalid_utf8'],
  ['overlong UTF-8', Buffer.from('7b2261223a22c080227d', 'hex'), ' invalid_utf8'],
  ['a surrogate in UTF-8', Buffer.from('7b2261223a22eda080227d', 'hex'), ' invalid_utf8'],
  ['Latin-1', Buffer.from('{"naam":"caf\u00e9"}', 'latin1'), ' invalid_utf8'],
  ['UTF-16', Buffer.from('{"naam":"x"}', 'utf16le'), ' syntax'],
  ['a duplicate name', '{"naam":"x","naam":"x"}', '/naam duplicate_name'],
  ['a duplicate name in disguise', '{"naam":"x","\\u006eaam":"y"}', '/naam duplicate_name'],
  ['a duplicate name deep inside', '{"a":[{"b/c":1,"b/c":2}]}', '/a/0/b~1c duplicate_name'],
  ['__proto__', '{"__proto__":{}}', '/__proto__ forbidden_name'],
  ['__proto__ in disguise', '{"\\u005f_proto__":1}', '/__proto__ forbidden_name'],
  ['NUL', '{"naam":"a\\u0000b"}', '/naam nul'],
  ['NUL in a name', '{"a\\u0000":1}', ' nul'],
  ['half a surrogate pair', '{"naam":"\\ud83e"}', '/naam lone_surrogate'],
  ['a surrogate pair the wrong way round', '{"naam":"\\udcaa\\ud83e"}', '/naam lone_surrogate'],
  ['a number beyond 2^53', '{"bouwjaar":9007199254740993}', '/bouwjaar lossy_number'],
  ['a number that is too large', '{"bouwjaar":1e400}', '/bouwjaar lossy_number'],
  ['a number that is too small', '{"bouwjaar":1e-400}', '/bouwjaar lossy_number'],
  ['a number with too many digits', '{"bouwjaar":0.1000000000000000055}', '/bouwjaar lossy_number'],
  ['nesting of 21', nested(21), `${'/a'.repeat(20)} too_deep`],
  ['nesting of 10,000', '['.repeat(10_000), `${'/0'.repeat(20)} too_deep`],
  [
    'several faults',
    '{"a":1e400,"a":"\\u0000","__proto__":1}',
    '/a lossy_number',
    '/a duplicate_name',
    '/a nul',
    '/__proto__ forbidden_name',
  ],
];

for (const [what, body, ...faults] of malformed) {
  test(`a body with ${what} is refused, and told where`, async (t) => {
    const reply = await post(t.context.client, body);
    t.is(reply.status, 400);
    t.is(codeOf(reply), 'malformed_json');
    t.deepEqual(faultsOf(reply), faults);
  });
}

test('a body may nest 20 deep; what is then wrong with it is another matter', async (t) => {
  const reply = await post(t.context.client, nested(20));
  t.is(codeOf(reply), 'invalid_request');
  t.true(faultsOf(reply).includes('/a unknown_field'));
});

test('numbers that can be held are read however they are written, and other names than __proto__ are only unknown', async (t) => {
  const { client, database } = t.context;
  const customerId = await customerOf(database);
  for (const number of ['2019', '2019.0', '2.019e3', '20190E-1', `2019.${'0'.repeat(1000)}`]) {
    const reply = await post(client, `{"naam":"x","customerId":"${customerId}","bouwjaar":${number}}`);
    t.is(reply.json<{ bouwjaar: number }>().bouwjaar, 2019, number.slice(0, 20));
  }
  const reply = await post(client, '{"constructor":1,"toString":2,"hasOwnProperty":3}');
  t.deepEqual(faultsOf(reply).slice(-3).sort(), [
    '/constructor unknown_field',
    '/hasOwnProperty unknown_field',
    '/toString unknown_field',
  ]);
});

test('a body made to be slow to read, or to be told of at length, costs no more than another', async (t) => {
  const { client } = t.context;
  const zeros = '0'.repeat(60_000);
  const name = 'n'.repeat(30_000);
  const hostile = [
    `{"bouwjaar":1${zeros}1}`,
    `{"bouwjaar":1.${zeros}1}`,
    `{"bouwjaar":1e${zeros}1}`,
    `{"naam":"${'\\u0000'.repeat(10_000)}`,
    `{"${name}":{"":0${',"":0'.repeat(6000)}}}`,
    `[${'"\\ud800",'.repeat(7000)}0]`,
    `{${'"a":1e999,'.repeat(6000)}"b":1}`,
    `{${Array.from({ length: 5000 }, (_, i) => `"x${i}":1`).join()}}`,
  ];
  for (const body of hostile) {
    const startedMs = performance.now();
    const reply = await post(client, body, { unchecked: true });
    t.is(reply.status, 400);
    t.true(performance.now() - startedMs < 1000, `${body.slice(0, 20)}: ${performance.now() - startedMs} ms`);
    t.true(reply.text.length < 1_000_000, `${body.slice(0, 20)}: ${reply.text.length} characters`);
  }
});
