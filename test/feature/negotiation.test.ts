import { listEncodings } from '../support/decompressed.js';
import { codeOf, listNames, type Page } from '../support/lists.js';
import { withoutCursors } from '../support/page-reader.js';
import { gatewayTest } from '../support/workspace.js';

const test = gatewayTest({ chunkRowsMax: 100, chunkBytes: 16_384 });
// One at a time: the client reads and checks large pages in the process that serves them.

test.serial('a client that takes JSON, or anything, gets JSON', async (t) => {
  for (const accept of [
    'application/json',
    '*/*',
    'application/*',
    'text/html, application/json;q=0.1',
    'text/html,*/*;q=0.5',
    'Application/JSON',
    '',
  ]) {
    for (const path of ['/klanten?perPage=1', '/openapi.json']) {
      const reply = await t.context.client.get(path, { headers: { accept } });
      t.is(reply.status, 200, accept);
      t.is(reply.headers['content-type'], 'application/json');
    }
  }
});

test.serial('a client that takes no JSON gets a 406, in problem+json all the same', async (t) => {
  for (const accept of [
    'text/html',
    'application/xml',
    'text/csv, text/plain',
    'application/json;q=0',
    '*/*;q=0',
    'application/json;q=0, text/*',
  ]) {
    for (const path of ['/klanten', '/klanten/x', '/openapi.json']) {
      const reply = await t.context.client.get(path, { headers: { accept } });
      t.is(reply.status, 406, accept);
      t.is(codeOf(reply), 'not_acceptable');
      t.is(reply.headers['content-type'], 'application/problem+json');
    }
  }
});

test.serial(
  'an Accept of more than a thousand characters is disregarded, because reading it takes too long',
  async (t) => {
    for (const accept of [`"${','.repeat(15_000)}`, 'text/html,'.repeat(110)])
      t.is((await t.context.client.get('/klanten?perPage=1', { headers: { accept } })).status, 200);
    t.is((await t.context.client.get('/klanten', { headers: { accept: 'text/html,'.repeat(99) } })).status, 406);
  },
);

for (const list of listNames) {
  test.serial(
    `${list}: every encoding holds the same bytes as identity, whether sent at once or in pieces`,
    async (t) => {
      for (const query of ['perPage=50', 'perPage=700']) {
        const plain = await t.context.client.get(`/${list}?${query}`);
        t.is(plain.headers['content-encoding'], undefined);
        t.true(plain.headers.vary?.includes('Accept-Encoding'));
        for (const encoding of listEncodings) {
          const packed = await t.context.client.get(`/${list}?${query}`, { headers: { 'accept-encoding': encoding } });
          t.is(packed.headers['content-encoding'], encoding);
          t.true(packed.headers.vary?.includes('Accept-Encoding'));
          t.true(packed.bytes.length < plain.bytes.length / 2, `${packed.bytes.length} of ${plain.bytes.length}`);
          t.is(withoutCursors(packed.text), withoutCursors(plain.text));
        }
      }
    },
  );
}

test.serial('the encoding is the one the client prefers, and of equal ones the first of COMPRESSION', async (t) => {
  const [best] = listEncodings;
  const named = listEncodings.find((encoding) => encoding !== 'zstd');
  const chosen: Record<string, string | undefined> = {
    'gzip, deflate, br, zstd': best,
    'gzip;q=0.5, br': 'br',
    'br;q=0, gzip': 'gzip',
    'gzip;q=0, br;q=0': undefined,
    'gzip;q=0.2, br;q=0.1': 'gzip',
    'gzip;q=0': undefined,
    identity: undefined,
    'identity;q=1, gzip;q=0.5': undefined,
    'identity;q=0.5, gzip;q=0.5': 'gzip',
    deflate: undefined,
    zstd: listEncodings.find((encoding) => encoding === 'zstd'),
    'zstd;q=0.9, gzip': 'gzip',
    '*;q=0': undefined,
    '*': named,
    '*;q=0.5, gzip;q=0.4': named,
    '': undefined,
    GZIP: 'gzip',
    'gzip ; Q=0.5': 'gzip',
    'gzip;q=x': undefined,
  };
  for (const [accepted, encoding] of Object.entries(chosen)) {
    const reply = await t.context.client.get('/werkbonnen?perPage=50', { headers: { 'accept-encoding': accepted } });
    t.is(reply.status, 200);
    t.is(reply.headers['content-encoding'], encoding, accepted);
    t.is(reply.json<Page>().data.length, 50);
  }
});

test.serial('details are always identity, as their ETag is strong', async (t) => {
  const { client } = t.context;
  for (const list of ['klanten', 'installaties', 'werkbonnen']) {
    const [record] = (await client.get(`/${list}?perPage=1`)).json<Page>().data;
    const reply = await client.get(`/${list}/${record?.id}`, { headers: { 'accept-encoding': 'gzip, br' } });
    t.is(reply.headers['content-encoding'], undefined);
    t.deepEqual(reply.json(), record);
  }
});

test.serial('problems are never compressed', async (t) => {
  const query = Array.from({ length: 60 }, (_, i) => `onbekend${i}=1`).join('&');
  const reply = await t.context.client.get(`/klanten?${query}`, { headers: { 'accept-encoding': 'gzip, br' } });
  t.is(reply.status, 400);
  t.is(reply.headers['content-encoding'], undefined);
});

test.serial('HEAD names the encoding that GET would have', async (t) => {
  for (const query of ['perPage=50', 'perPage=700']) {
    const options = { headers: { 'accept-encoding': 'gzip' } };
    const reply = await t.context.client.request('HEAD', `/werkbonnen?${query}`, options);
    t.is(reply.headers['content-encoding'], 'gzip');
    t.is(reply.text, '');
  }
});

test('a large page in br or zstd has a window of 256 KB, so that many slow clients cost little memory', async (t) => {
  const { client } = await t.context.database.gateway({ chunkRowsMax: 20, compression: 'br:1 zstd:1' });
  const get = (encoding: string) => client.get('/werkbonnen?perPage=200', { headers: { 'accept-encoding': encoding } });
  const br = await get('zstd, br');
  t.is(br.headers['content-encoding'], 'br', 'COMPRESSION has it first');
  t.true(br.text.endsWith('"complete":true}}'));
  t.is((br.bytes[0] as number) & 0b1111, 0b0011, 'WBITS of 18 (RFC 7932 §9.1)');
  if (listEncodings.includes('zstd'))
    t.is((await get('zstd')).bytes[5], 0x40, 'Window_Descriptor of 2^18 (RFC 8878 §3.1.1.1.2)');
  t.is((await get('gzip')).headers['content-encoding'], undefined, 'COMPRESSION does not have it');
});
