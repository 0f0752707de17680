import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import test from 'ava';
import { FixedBody } from '../../src/http/descriptions.js';

const text = JSON.stringify(Array.from({ length: 500 }, (_, i) => `installation ${i}`));

test('each content coding is made once: every request gets the same bytes, also requests at the same time', async (t) => {
  const body = new FixedBody(async () => ({ text }));
  for (const encoding of ['br', 'gzip', undefined] as const) {
    const [first, second] = await Promise.all([body.reply(encoding, undefined), body.reply(encoding, undefined)]);
    t.is(first.body, second.body);
    t.is(first.body, (await body.reply(encoding, undefined)).body);
  }
});

test('every coding holds the text and has a strong ETag of its own, which another gateway gives as well', async (t) => {
  const decoded = { br: brotliDecompressSync, gzip: gunzipSync, identity: (bytes: Buffer) => bytes };
  const etags = new Set<string>();
  for (const encoding of ['br', 'gzip', undefined] as const) {
    const { status, headers, body } = await new FixedBody(async () => ({ text })).reply(encoding, undefined);
    t.is(status, 200);
    t.is(headers['Content-Encoding'], encoding);
    t.is(decoded[encoding ?? 'identity'](body as Buffer).toString(), text);
    t.regex(headers.ETag as string, /^"[\w-]{22}"$/);
    etags.add(headers.ETag as string);
    t.is((await new FixedBody(async () => ({ text })).reply(encoding, undefined)).headers.ETag, headers.ETag);
  }
  t.is(etags.size, 3);
  t.not(
    (await new FixedBody(async () => ({ text: `${text} ` })).reply(undefined, undefined)).headers.ETag,
    [...etags][2],
  );
});
