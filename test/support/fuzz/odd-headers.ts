import fc from 'fast-check';
import { newToken } from '../../../src/http/token-format.js';
import type { HeaderField } from './request.js';
import type { FuzzWorkspace, World } from './world.js';

/** Anything a header's value can be made of; no CR and LF, which would end it. */
export const oddBytes: fc.Arbitrary<string> = fc.oneof(
  fc
    .array(fc.integer({ min: 1, max: 255 }), { maxLength: 60 })
    .map((codes) => String.fromCharCode(...codes.filter((code) => code !== 10 && code !== 13))),
  fc.constantFrom('', ' ', '\t', ',', ';', '"', '""', '\0', '\x7f', '\xff\xfe', 'Ã©', "' or 1=1 --", '%00', '{{7*7}}'),
  fc.constantFrom(100, 1000, 5000).map((length) => 'lang '.repeat(length / 5)),
);

/** Values of an Authorization header, most of them invalid. */
export function oddAuthorizations(world: World): fc.Arbitrary<readonly HeaderField[]> {
  const workspaces: fc.Arbitrary<FuzzWorkspace> = fc.constantFrom(...world.workspaces);
  const token = fc
    .tuple(workspaces, fc.constantFrom('all', 'klanten', 'logboeken', 'writeOnly', 'expired', 'revoked'))
    .map(([{ tokens }, name]) => tokens[name as keyof typeof tokens]);
  const value = fc.oneof(
    token.map((text) => `Bearer ${text}`),
    token.map((text) => `bearer   ${text} `),
    token.map((text) => `Basic ${Buffer.from(`${text}:`).toString('base64')}`),
    token.map((text) => text),
    token.map((text) => `Token ${text}`),
    token.map((text) => `Bearer ${text},${text}`),
    token.map((text) => `Bearer "${text}"`),
    token.map((text) => `Bearer ${text.slice(0, -1)}`),
    token.map((text) => `Bearer ${text}0`),
    token.map((text) => `Bearer ${text.toUpperCase()}`),
    token.map((text) => `Bearer ${text.slice(0, 20)}${text.charAt(20) === 'a' ? 'b' : 'a'}${text.slice(21)}`),
    fc.nat().map(() => `Bearer ${newToken()}`),
    fc.constantFrom('Bearer', 'Bearer ', 'Bearer null', 'Bearer wdg_', 'Digest a="b"'),
    oddBytes.map((text) => `Bearer ${text}`),
    oddBytes,
  );
  const field = value.map((text): HeaderField => ['Authorization', text]);
  return fc.oneof(
    { weight: 2, arbitrary: fc.constant([]) },
    { weight: 8, arbitrary: field.map((each) => [each]) },
    { weight: 2, arbitrary: fc.tuple(field, field) },
  );
}

const values: Readonly<Record<string, readonly string[]>> = {
  Accept: ['text/html', 'application/xml', 'application/json;q=0', '*/*;q=0', 'application/json;version=2', ',', '*'],
  'Accept-Encoding': ['zstd', '*;q=0', 'identity;q=0', 'gzip;q=2', 'gzip;q=x', 'GZIP', 'br, br, br', ''],
  'Accept-Charset': ['utf-16', '*;q=0'],
  'Accept-Language': ['nl', '*'],
  'If-Match': [
    '*',
    '"v1"',
    '"v2"',
    '"v1", "v2", "v3"',
    'W/"v1"',
    'v1',
    '"',
    '""',
    '"v9223372036854775808"',
    '"v1" "v2"',
    ',',
  ],
  'If-None-Match': ['*', '"v1"', 'W/"v1"', '"v1", "v2"', 'v1', '"\xe9"', ''],
  'If-Modified-Since': ['Sat, 01 Jan 2050 00:00:00 GMT', 'gisteren'],
  'If-Unmodified-Since': ['Sat, 01 Jan 2000 00:00:00 GMT'],
  'If-Range': ['"v1"'],
  'Idempotency-Key': [
    '',
    '"quoted key"',
    '"a"b"',
    '"a',
    'a b',
    'sleutel-é',
    'x'.repeat(255),
    'x'.repeat(256),
    '1',
    '\x01',
  ],
  'Content-Type': [
    'application/json; charset=utf-16',
    'application/json; charset=UTF-8',
    'application/json;charset="utf-8";a=b',
    'application/merge-patch+json',
    'application/json-patch+json',
    'text/plain',
    'multipart/form-data; boundary=x',
    'multipart/form-data',
    'application/x-www-form-urlencoded',
    'application/json;',
    'application/json; charset',
    'json',
    '/',
    '',
  ],
  'Content-Encoding': ['gzip', 'br', 'identity', 'deflate', 'x'],
  'Content-Length': ['-1', '+5', 'abc', '1e3', '99999999999999999999', '0x10'],
  'Transfer-Encoding': ['chunked', 'gzip, chunked', 'identity', 'chunked, chunked', '\x0bchunked', 'x'],
  Expect: ['100-continue', '100-Continue', 'foo', '200-ok', ''],
  Range: ['bytes=0-10', 'bytes=-1', 'items=0-1', 'bytes=0-0,1-1', 'x'],
  Connection: ['close', 'keep-alive', 'upgrade', 'keep-alive, Upgrade', 'x', ''],
  Upgrade: ['h2c', 'websocket', 'HTTP/2.0'],
  TE: ['trailers', 'gzip'],
  Trailer: ['Authorization'],
  Host: [
    '',
    'a b',
    'evil.example',
    'localhost:99999',
    '[::1]',
    '[',
    ']',
    ':',
    ':80',
    'a/b',
    'a@b',
    'a?b',
    '-',
    '.',
    'a:b:c',
    '%41',
    'x'.repeat(255),
    'x'.repeat(300),
    'é',
  ],
  'X-Forwarded-For': ['127.0.0.1', '::1, 10.0.0.1', "' or 1=1 --"],
  'X-Forwarded-Host': ['evil.example'],
  'X-Forwarded-Proto': ['https', 'javascript'],
  Forwarded: ['for=127.0.0.1;host=evil.example;proto=https'],
  'X-HTTP-Method-Override': ['DELETE', 'PATCH'],
  'X-Original-URL': ['/metrics'],
  Cookie: ['session=1', 'a=b; c=d'],
  Origin: ['https://evil.example', 'null'],
  Referer: ['https://evil.example/'],
  'Sec-Fetch-Mode': ['cors'],
  Prefer: ['return=minimal'],
  Via: ['1.1 proxy'],
};

/** A header field that a client had better not send, or that means nothing here. */
export function oddHeaders(world: World): fc.Arbitrary<readonly HeaderField[]> {
  const names = [...Object.keys(values), '__proto__', 'constructor'];
  const known = fc.constantFrom(
    ...Object.entries(values).flatMap(([name, texts]) => texts.map((text): HeaderField => [name, text])),
  );
  const foreign = fc.constantFrom(...world.workspaces);
  const smuggled = foreign.chain(({ id, tokens }) =>
    fc.constantFrom<HeaderField>(
      ['X-Workspace-Id', id],
      ['X-Request-Id', tokens.all],
      ['X-Request-Id', `a/${tokens.klanten}`],
      ['Idempotency-Key', tokens.all],
      ['X-Api-Key', tokens.all],
      ['Proxy-Authorization', `Bearer ${tokens.all}`],
      ['Cookie', `access_token=${tokens.all}`],
    ),
  );
  return fc.oneof<fc.WeightedArbitrary<readonly HeaderField[]>[]>(
    { weight: 10, arbitrary: known.map((field) => [field]) },
    { weight: 3, arbitrary: fc.tuple(fc.constantFrom(...names), oddBytes).map((field): HeaderField[] => [field]) },
    { weight: 2, arbitrary: smuggled.map((field) => [field]) },
    { weight: 2, arbitrary: known.map((field) => [field, field]) },
    { weight: 1, arbitrary: oddBytes.map((text) => [['X-Request-Id', text]]) },
    { weight: 1, arbitrary: fc.constantFrom('1', '2').map((key) => [['Idempotency-Key', key]]) },
    {
      weight: 1,
      arbitrary: fc
        .constantFrom(10, 500, 1500)
        .map((count) => Array.from({ length: count }, (_, n): HeaderField => [`X-Many-${n}`, 'waarde'])),
    },
    { weight: 1, arbitrary: fc.constantFrom(8000, 20_000).map((length) => [['X-Long', 'x'.repeat(length)]]) },
  );
}
