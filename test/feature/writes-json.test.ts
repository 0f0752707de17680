import { codeOf, faultsOf } from '../support/lists.js';
import { malformed, nested } from '../support/malformed-json.js';
import { customerOf } from '../support/primary-side.js';
import { gatewayTest } from '../support/workspace.js';
import { post } from '../support/writes.js';

const test = gatewayTest();

for (const [what, body, ...faults] of malformed) {
  test(`a body with ${what} is refused with the place of the fault`, async (t) => {
    const reply = await post(t.context.client, body);
    t.is(reply.status, 400);
    t.is(codeOf(reply), 'malformed_json');
    t.deepEqual(faultsOf(reply), faults);
  });
}

test('a body may nest 20 deep, and is then checked like any other body', async (t) => {
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

test('a body made to be slow to parse, or to have a long error response, costs no more than another body', async (t) => {
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
    const before = process.cpuUsage(); // the gateway runs in this process; the clock goes on while others have the processor
    const reply = await post(client, body, { unchecked: true });
    const { user, system } = process.cpuUsage(before);
    t.is(reply.status, 400);
    t.true((user + system) / 1000 < 1000, `${body.slice(0, 20)}: ${(user + system) / 1000} ms`);
    t.true(reply.text.length < 1_000_000, `${body.slice(0, 20)}: ${reply.text.length} characters`);
  }
});
