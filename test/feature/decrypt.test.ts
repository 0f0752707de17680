import { randomBytes } from 'node:crypto';
import { GcmKey, Ghash } from '../../src/projection/aes-gcm/gcm-key.js';
import { pages } from '../support/lists.js';
import { eventually, gatewayTest, type TestContext } from '../support/workspace.js';

const test = gatewayTest();

async function customers({ client }: Pick<TestContext, 'client'>): Promise<string> {
  const texts: string[] = [];
  for await (const { data } of pages<object>(client, '/klanten?perPage=1000')) texts.push(JSON.stringify(data));
  return texts.join('');
}

test.serial('DECRYPT=native shows the same customers, and uses nothing of the batched way', async (t) => {
  const batched = await customers(t.context);
  const { open } = GcmKey.prototype;
  GcmKey.prototype.open = () => t.fail() as unknown as boolean;
  try {
    const native = await t.context.database.gateway({ decrypt: 'native' });
    t.is(await customers(native), batched);
  } finally {
    GcmKey.prototype.open = open;
  }
});

test.serial('values that only node:crypto can decrypt are shown, logged and counted', async (t) => {
  const { gateway, log } = t.context;
  const whole = await customers(t.context);
  t.false(log().includes('decrypt_mismatch'));
  const { open } = GcmKey.prototype;
  GcmKey.prototype.open = () => false;
  try {
    t.is(await customers(t.context), whole);
  } finally {
    GcmKey.prototype.open = open;
  }
  await eventually(t, 'the log', () => log().includes('"decrypt_mismatch"'));
  const metrics = await (await fetch(`${gateway.opsUrl}/metrics`)).text();
  t.regex(metrics, /^gateway_decrypt_mismatches_total [1-9]/m);
});

test.serial('a gateway whose batched decryption is wrong does not start, unless DECRYPT is native', async (t) => {
  const { database } = t.context;
  const { finish } = Ghash.prototype;
  Ghash.prototype.finish = function (associatedBytes, cipherBytes) {
    finish.call(this, associatedBytes, cipherBytes + 1);
  };
  try {
    const { message } = await t.throwsAsync(database.gateway());
    t.regex(message, /^DATA_KEYS: Decryption \(batched\) under key "\w+" differs from node:crypto's/);
    for (const key of Object.values(JSON.parse(database.settings.dataKeys) as Record<string, string>))
      t.false(message.includes(key.slice(0, 8)));
    await t.notThrowsAsync(database.gateway({ decrypt: 'native' }));
  } finally {
    Ghash.prototype.finish = finish;
  }
});

test.serial('a page under a wrong key is a few log lines, which tell the number of values', async (t) => {
  const { dataKeys } = t.context.database.settings;
  // A single one: a gateway that can decode no value of a field refuses to start.
  const wrong = { ...(JSON.parse(dataKeys) as object), k1: randomBytes(32).toString('base64') };
  const { client, gateway, log } = await t.context.database.gateway({ dataKeys: JSON.stringify(wrong) });
  await client.get('/klanten?perPage=1000');
  const metrics = await (await fetch(`${gateway.opsUrl}/metrics`)).text();
  const counted = [...metrics.matchAll(/^gateway_decode_errors_total\{.*\} (\d+)$/gm)].map(([, n]) => Number(n));
  await gateway.stop();
  const lines = log()
    .split('\n')
    .filter((line) => line.includes('decode_failed'))
    .map((line) => JSON.parse(line) as { repeated?: number });
  const sum = (numbers: number[]): number => numbers.reduce((a, b) => a + b, 0);
  t.true(sum(counted) > 200, `${sum(counted)} values`);
  t.is(sum(lines.map(({ repeated = 1 }) => repeated)), sum(counted));
  t.true(lines.length <= 2 * counted.filter((n) => n > 0).length, `${lines.length} lines`);
});
