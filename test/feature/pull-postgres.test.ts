import { postgresDestination } from '../../src/pull/postgres.js';
import { gatewayTest } from '../support/workspace.js';

// Characters that PostgreSQL cannot hold must not end a copy in it.

const test = gatewayTest();

test('U+0000 and half surrogates in a record are copied as U+FFFD, and nothing else changes', async (t) => {
  const { database } = t.context;
  const destination = await postgresDestination(database.settings.adminUrl);
  t.teardown(() => destination.close());
  const copy = await destination.open('odd_texts', [
    { name: 'id', type: 'text' },
    { name: 'name', type: 'text' },
    { name: 'more', type: 'jsonb' },
  ]);
  const texts: [json: string, stored: string][] = [
    [String.raw`Bakkerij\u0000Jansen`, 'Bakkerij\ufffdJansen'],
    [String.raw`Bakkerij \ud83d`, 'Bakkerij \ufffd'],
    [String.raw`\uDE00 \uD83D\uDE00 \ud83d\ud83d\ude00`, '\ufffd 😀 \ufffd😀'],
    [String.raw`C:\\u0000 \\\\ud83d \n \" é 😀`, 'C:\\u0000 \\\\ud83d \n " é 😀'],
  ];
  const data = texts.map(
    ([json], i) => `{"id":"${i}","name":"${json}","more":{"n":12345678901234567890.10,"a":"${json}"}}`,
  );
  await copy.store(`{"data":[${data.join(',')}],"pagination":{}}`, { since: '1', cursor: null });
  await copy.commit();
  const { rows } = await database.primary.query(
    `select name, more ->> 'a' as a, more ->> 'n' as n from workspace_data.odd_texts order by id`,
  );
  t.deepEqual(
    rows,
    texts.map(([, stored]) => ({ name: stored, a: stored, n: '12345678901234567890.10' })),
  );
});
