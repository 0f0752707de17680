import { faultsOf } from '../support/lists.js';
import { gatewayTest } from '../support/workspace.js';

const test = gatewayTest();

const badDates = [
  '2026-02-30',
  '2026-02-29',
  '2026-13-01',
  '2026-00-10',
  '2026-01-00',
  '0000-01-01',
  '2026-1-1',
  '20260101',
  '26-01-01',
  '2026-01-01T00:00:00Z',
  '%202026-01-01',
  '2026-01-01%20',
  '2026-01-01%00',
  '12026-01-01',
  '-2026-01-01',
  'today',
  'infinity',
  '2026-W01-1',
  '01-01-2026',
];

for (const list of ['werkbonnen', 'logboeken'] as const) {
  test(`${list}: a date that is not in the calendar, or not written as one, is refused`, async (t) => {
    for (const parameter of ['from', 'to']) {
      for (const value of badDates) {
        const reply = await t.context.client.get(`/${list}?${parameter}=${value}`);
        t.is(reply.status, 400, value);
        t.deepEqual(faultsOf(reply), [`${parameter} invalid_date`], value);
      }
    }
  });

  test(`${list}: from after to is refused, from equal to to is not`, async (t) => {
    const { client } = t.context;
    const reversed = await client.get(`/${list}?from=2024-05-02&to=2024-05-01`);
    t.is(reversed.status, 400);
    t.deepEqual(faultsOf(reversed), ['from range_reversed']);
    t.is((await client.get(`/${list}?from=2024-05-01&to=2024-05-01`)).status, 200);
    t.is((await client.get(`/${list}?from=0001-01-01&to=9999-12-31&perPage=1`)).status, 200);
  });
}
