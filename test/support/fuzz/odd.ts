import fc from 'fast-check';
import { makeToken } from '../../../src/serve/http/token-format.js';
import { encodeCursor, makeCursorContext } from '../../../src/serve/read/cursor.js';
import { listNames } from '../lists.js';
import { words } from '../words.js';
import type { Harvest } from './harvest.js';
import { type HeaderField, ownCanary, weighted } from './request.js';
import { apiPath, members } from './right.js';
import type { FuzzWorkspace, World } from './world.js';

// Parts of requests that a careful client does not send, or that mean something else than they seem to.

const bytes = (text: string): Buffer => Buffer.from(text);
/** Bytes that end a request target would make another request of it. */
const inTarget = (text: string): string => text.replace(/[\s\0]/g, '');
const percent = (text: string): string =>
  [...Buffer.from(text)].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('');

/** Anything a header's value can be made of; no CR and LF, which would end it. */
const oddBytes: fc.Arbitrary<string> = fc.oneof(
  fc
    .array(fc.integer({ min: 1, max: 255 }), { maxLength: 60 })
    .map((codes) => String.fromCharCode(...codes.filter((code) => code !== 10 && code !== 13))),
  fc.constantFrom('', ' ', '\t', ',', ';', '"', '""', '\0', '\x7f', '\xff\xfe', 'Ã©', "' or 1=1 --", '%00', '{{7*7}}'),
  fc.constantFrom(100, 1000, 5000).map((length) => 'lang '.repeat(length / 5)),
);

export function oddAuthorizations(world: World): fc.Arbitrary<readonly HeaderField[]> {
  const token = fc
    .tuple(workspaceOf(world), fc.constantFrom('all', 'klanten', 'logboeken', 'writeOnly', 'expired', 'revoked'))
    .map(([{ tokens }, name]) => tokens[name as keyof typeof tokens]);
  const forms: readonly ((token: string) => string)[] = [
    (text) => `Bearer ${text}`,
    (text) => `bearer   ${text} `,
    (text) => `Basic ${Buffer.from(`${text}:`).toString('base64')}`,
    (text) => text,
    (text) => `Token ${text}`,
    (text) => `Bearer ${text},${text}`,
    (text) => `Bearer "${text}"`,
    (text) => `Bearer ${text.slice(0, -1)}`,
    (text) => `Bearer ${text}0`,
    (text) => `Bearer ${text.toUpperCase()}`,
    (text) => `Bearer ${text.slice(0, 20)}${text.charAt(20) === 'a' ? 'b' : 'a'}${text.slice(21)}`,
    () => `Bearer ${makeToken()}`,
  ];
  const value = weighted(
    [12, fc.tuple(token, fc.constantFrom(...forms)).map(([text, form]) => form(text))],
    [1, fc.constantFrom('Bearer', 'Bearer ', 'Bearer null', 'Bearer wdg_', 'Digest a="b"')],
    [1, oddBytes.map((text) => `Bearer ${text}`)],
    [1, oddBytes],
  );
  const field = value.map((text): HeaderField => ['Authorization', text]);
  return weighted<readonly HeaderField[]>(
    [2, fc.constant([])],
    [8, field.map((each) => [each])],
    [2, fc.tuple(field, field)],
  );
}

/** " | " stands between the values of header fields. */
const fields = `
Accept: text/html | application/xml | application/json;q=0 | */*;q=0 | application/json;version=2 | , | *
Accept-Encoding: zstd | *;q=0 | identity;q=0 | gzip;q=2 | gzip;q=x | GZIP | br, br, br |
Accept-Charset: utf-16 | *;q=0
Accept-Language: nl | *
If-Match: * | "v1" | "v2" | "v1", "v2", "v3" | W/"v1" | v1 | " | "" | "v9223372036854775808" | "v1" "v2" | ,
If-None-Match: * | "v1" | W/"v1" | "v1", "v2" | v1 | "\xe9" |
If-Modified-Since: Sat, 01 Jan 2050 00:00:00 GMT | gisteren
If-Unmodified-Since: Sat, 01 Jan 2000 00:00:00 GMT
If-Range: "v1"
Idempotency-Key: | "quoted key" | "a"b" | "a | a b | sleutel-é | ${'x'.repeat(255)} | ${'x'.repeat(256)} | 1 | \x01
Content-Type: application/json; charset=utf-16 | application/json; charset=UTF-8 | application/json;charset="utf-8";a=b
Content-Type: application/merge-patch+json | application/json-patch+json | text/plain | json | / |
Content-Type: multipart/form-data; boundary=x | multipart/form-data | application/x-www-form-urlencoded
Content-Type: application/json; | application/json; charset
Content-Encoding: gzip | br | identity | deflate | x
Content-Length: -1 | +5 | abc | 1e3 | 99999999999999999999 | 0x10
Transfer-Encoding: chunked | gzip, chunked | identity | chunked, chunked | \x0bchunked | x
Expect: 100-continue | 100-Continue | foo | 200-ok |
Range: bytes=0-10 | bytes=-1 | items=0-1 | bytes=0-0,1-1 | x
Connection: close | keep-alive | upgrade | keep-alive, Upgrade | x |
Upgrade: h2c | websocket | HTTP/2.0
TE: trailers | gzip
Trailer: Authorization
Host: | a b | evil.example | localhost:99999 | [::1] | [ | ] | : | :80 | a/b | a@b | a?b | - | . | a:b:c | %41 | é
Host: ${'x'.repeat(255)} | ${'x'.repeat(300)}
X-Forwarded-For: 127.0.0.1 | ::1, 10.0.0.1 | ' or 1=1 --
X-Forwarded-Host: evil.example
X-Forwarded-Proto: https | javascript
Forwarded: for=127.0.0.1;host=evil.example;proto=https
X-HTTP-Method-Override: DELETE | PATCH
X-Original-URL: /metrics
Cookie: session=1 | a=b; c=d
Origin: https://evil.example | null
Referer: https://evil.example/
Sec-Fetch-Mode: cors
Prefer: return=minimal
Via: 1.1 proxy`
  .trim()
  .split('\n')
  .flatMap((line) => {
    const [name, values] = [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)];
    return `${values} `.split(' | ').map((value): HeaderField => [name, value.replace(/^ | $/g, '')]);
  });

export function oddHeaders(world: World): fc.Arbitrary<readonly HeaderField[]> {
  const names = [...new Set(fields.map(([name]) => name)), '__proto__', 'constructor'];
  const known = fc.constantFrom(...fields);
  const smuggled = workspaceOf(world).chain(({ id, tokens }) =>
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
  const many = (count: number) => Array.from({ length: count }, (_, n): HeaderField => [`X-Many-${n}`, 'waarde']);
  return weighted<readonly HeaderField[]>(
    [10, known.map((field) => [field])],
    [3, fc.tuple(fc.constantFrom(...names), oddBytes).map((field) => [field])],
    [2, smuggled.map((field) => [field])],
    [2, known.map((field) => [field, field])],
    [1, oddBytes.map((text) => [['X-Request-Id', text]])],
    [1, fc.constantFrom('1', '2').map((key) => [['Idempotency-Key', key]])],
    [1, fc.constantFrom(10, 500, 1500).map(many)],
    [1, fc.constantFrom(8000, 20_000).map((length) => [['X-Long', 'x'.repeat(length)]])],
  );
}

/** LIST stands for a resource and ID for one of its ids; %LIST and %ID for the same in percent encoding. */
const targets = words(`
  /api/v1/LIST/ID /api/v1/LIST/^ID /api/v1/LIST/ID/ /api/v1/LIST/ID/werkbonnen /api/v1/LIST/ID;v=1 /api/v1/LIST/ID%20
  /api/v1/LIST/ID%00 /api/v1/LIST/ID'%20or%201=1-- /api/v1/LIST/-ID /api/v1/LIST/%7BID%7D /api/v1/LIST/%ID
  /api/v1/LIST/ /api/v1//LIST /api//v1/LIST //LIST //evil.example/api/v1/LIST http://evil.example/api/v1/LIST
  /api/v1/%LIST /API/V1/LIST /api/v1/^LIST /api/v1/LIST/../klanten /api/v1/LIST/%2e%2e/klanten
  /api/v1/LIST/..%2f..%2fmetrics /api/v1/./LIST /api/v1/LIST#x /api/v1/LIST?#x /api/v1\\LIST /api/v1/LIST;x
  /api/v1/LIST%3FperPage=1 /api/v1/LIST/% /api/v1/LIST/%zz /api/v1/LIST/%ff%c0%80 /api/v1/LIST/%2F
  /api/v1/LIST/__proto__ /api/v1/LIST/constructor /api/v1/LIST/${'a'.repeat(3000)} /api/v1/LIST/${'a'.repeat(6000)}
  /api/v1/LIST/1 /api/v2/LIST api/v1/LIST http://[/api/v1/LIST http://a:b@c:99999/api/v1/LIST`);
const forms: Readonly<Record<string, (text: string) => string>> = {
  '': (text) => text,
  '%': percent,
  '^': (text) => text.toUpperCase(),
  '-': (text) => text.replaceAll('-', ''),
};

/** These paths and whole targets lead nowhere, or not where they seem to. */
export function oddTargets(world: World): fc.Arbitrary<string> {
  const ids = workspaceOf(world).chain(({ customers, installations, workOrders }) =>
    fc.constantFrom(...[customers, installations, workOrders].flatMap((each) => each.slice(0, 5))),
  );
  const resources = fc.constantFrom(...listNames, 'gebruikers', 'api_tokens', 'openapi.json');
  const around = fc
    .tuple(fc.constantFrom(...targets), resources, ids)
    .map(([target, list, id]) =>
      target.replace(/([%^-]?)(LIST|ID)/g, (_, form: string, what) => forms[form]?.(what === 'ID' ? id : list) ?? ''),
    );
  const others = words(`/ * ? /? // //[ /[ /. /.. /% /\\ x [::1] a:1 http:// http://[
    /metrics /livez /readyz /docs /.env /favicon.ico /api /api/v1 /api/v1/`);
  return weighted(
    [12, around],
    [3, fc.constantFrom(...others)],
    [1, oddBytes.map((text) => `/${inTarget(text)}`)],
    [1, oddBytes.map((text) => `${apiPath}/klanten/${inTarget(text)}`)],
  );
}

export function oddParameters(world: World, harvest: Harvest): fc.Arbitrary<string> {
  const workspaces = workspaceOf(world);
  const id = workspaces.chain(({ customers, installations }) => fc.constantFrom(...customers, ...installations));
  const name = fc.constantFrom(
    ...words(`page perPage total cursor customerId installationId entity entityId from to ids order updatedSince status
      serienummer actie`),
  );
  const numbers = words('0 -1 1e3 %2B1 0x10 %207 1.0 99999999999999999999 999999999 1000 10000 10001 \u0663 NaN');
  const days = words(`2026-02-30 0000-01-01 0001-01-01 9999-12-31 10000-01-01 2026-2-3 2026-03-29 infinity now 20260101
    2026-01-01T00:00:00Z -0044-03-15`);
  const texts = words(`%00 a%00b %ff %c0%80 %ed%a0%80 % %zz %E2%82%AC + ' %27%20or%201=1%20--
    1;select%20pg_sleep(1) \xff {} [] null true TRUE $1`);
  const loose = words(`&&& = =1 page __proto__=1 constructor=1 toString page[]=1 page[$gt]=1 limit=1 PAGE=1 %70age=1
    ${'x=1'.repeat(100)} ${'x=1&'.repeat(200)}`);
  const given = (names: fc.Arbitrary<string>, value: fc.Arbitrary<string>): fc.Arbitrary<string> =>
    fc.tuple(names, value).map((pair) => pair.join('='));
  return fc.oneof(
    given(fc.constantFrom('page', 'perPage'), fc.constantFrom(...numbers)),
    given(fc.constantFrom('from', 'to', 'updatedSince'), fc.constantFrom(...days)),
    given(name, fc.constantFrom('', ...texts)),
    given(name, fc.constantFrom(...numbers, ...days, ...texts)),
    given(fc.constantFrom('customerId', 'installationId', 'entityId'), id),
    given(fc.constant('cursor'), cursors(world, harvest)),
    given(fc.constant('cursor'), cursors(world, harvest)),
    given(name, oddBytes.map(encodeURIComponent)),
    given(name, oddBytes.map(inTarget)),
    given(
      name,
      fc.constantFrom(900, 3000, 5000).map((length) => 'x'.repeat(length)),
    ),
    workspaces.map(({ tokens }) => `access_token=${tokens.all}`),
    workspaces.map((workspace) => `workspace_id=${workspace.id}`),
    fc.constantFrom(...loose),
  );
}

const moments = `2020-01-01 00:00:00+00|0001-01-01 00:00:00+00|9999-12-31 23:59:59.999999+00|2020-01-01 24:00:00+00
|0044-03-15 00:00:00+00 BC|infinity|2020-01-01|9999-12-31||' or 1=1 --|\0|2020-01-01 00:00:00+01`;
const lasts = `00000000-0000-0000-0000-000000000000|ffffffff-ffff-ffff-ffff-ffffffffffff|0|-1|-0|9223372036854775807
|-9223372036854775808|9223372036854775808|1|x||\0|1\\n2`;
const samples = (text: string): fc.Arbitrary<string> =>
  fc.constantFrom(...text.split(/\n?\|/).map((each) => each.replace('\\n', '\n')));

/** A forged cursor may carry keys of the lists, their extremes, and what is no key. */
export const forgedKeys: fc.Arbitrary<readonly [string, string]> = fc.tuple(samples(moments), samples(lasts));

/** Makes the cursor that a client would get who knows how cursors are made, for the list, filters and workspace it asks for. */
export function forgedFor(target: string, workspaceId: string, key: readonly [string, string]): string {
  const [path = '', query = ''] = target.split('?');
  const filters = [...new URLSearchParams(query)].filter(
    ([name]) => !['page', 'perPage', 'total', 'cursor'].includes(name),
  );
  const context = makeCursorContext(workspaceId, path.split('/').at(-1) ?? '', Object.fromEntries(filters));
  return encodeCursor(context, { key, asOfMs: Date.now() });
}

/** Cursors of this and other lists and workspaces, damaged ones, and forged ones whose digest is right. */
function cursors(world: World, harvest: Harvest): fc.Arbitrary<string> {
  const forged = fc
    .tuple(workspaceOf(world), fc.constantFrom(...listNames), forgedKeys)
    .map(([{ id }, list, key]) => encodeCursor(makeCursorContext(id, list, {}), { key, asOfMs: null }));
  const given = fc.nat({ max: 499 }).map((number) => harvest.cursors.pick(number)?.cursor ?? 'AAAAAAAAAAAAAAAA');
  const damaged = fc
    .tuple(given, fc.nat({ max: 60 }), fc.constantFrom('A', 'b', '_', '-', '=', '+', '%00', ''))
    .map(([cursor, at, by]) => cursor.slice(0, at) + by + cursor.slice(at + 1));
  const doubled = given.map((cursor) => cursor + cursor);
  const padded = given.map((cursor) => `${cursor}=`);
  return fc.oneof(forged, given, damaged, doubled, padded);
}

const literals = [
  ...words(`1e400 -1e400 1.0 2.019e3 2019.5 9007199254740993 -0 01 +1 .5 1. NaN Infinity undefined 0x7e3 'a' "\\u0000"
    "\\ud800" "\\udc00\\ud800" "\\x41" "\\" "" "\\u00a0" "0000-01-01" "2024-02-30" "9999-12-31" "10000-01-01"
    "2024-01-01T00:00:00Z" "infinity" "a\\nb" [] {} true null [[[1]]] {"a":1}`),
  ...['"a\tb"', '" "'],
];

/** A body without quotes has only one way to be read. */
const bodies: readonly Buffer[] = [
  ...['', ' ', '{"naam":"x"} x', '{"naam":"x" "merk":"y"}', '\ufeff{"naam":"x"}', 'naam=x&merk=y'].map(bytes),
  ...words(`{ } [ {} [] null 1 "naam" {"naam":} {"naam":"x",} {'naam':'x'} {naam:1} {"naam":"x"}{ /**/{}
    {"naam":"x","naam":"y"} {"naam":"x","\\u006eaam":"y"} {"__proto__":{"naam":"x"}}
    {"naam":"x","__proto__":null,"constructor":{"prototype":{}}} {"naam":"x","toString":null,"hasOwnProperty":1}`).map(
    bytes,
  ),
  ...['caf\xe9', '\xc0\x80', '\xed\xa0\x80', '\xf4\x90\x80\x80', '\0'].map((name) =>
    Buffer.from(`{"naam":"${name}"}`, 'latin1'),
  ),
  Buffer.from('{"naam":"x"}', 'utf16le'),
  bytes('--x\r\nContent-Disposition: form-data; name="naam"\r\n\r\nx\r\n--x--\r\n'),
];

/** Bodies that a write must refuse, or had better take for what they are. */
export function oddBodies(world: World): fc.Arbitrary<Buffer> {
  const workspaces = world.workspaces.slice(0, 6);
  const workspace = fc.constantFrom(...workspaces);
  const valid = fc.oneof(...workspaces.map((each) => fc.record(members(each))));
  const name = fc.constantFrom(...words('customerId naam omschrijving merk bouwjaar inbedrijfstelling'));
  const others = words(
    `koudemiddel vullingKg interneNotities id version createdAt workspace_id x constructor toString ~/`,
  );
  const withMember = (names: fc.Arbitrary<string>): fc.Arbitrary<Buffer> =>
    fc
      .tuple(names, fc.constantFrom(...literals))
      .map(([each, literal]) => bytes(`{"naam":"${ownCanary}",${JSON.stringify(each)}:${literal}}`));
  const json = (value: unknown): Buffer => bytes(JSON.stringify(value));
  const sized = fc
    .constantFrom(199, 200, 201, 4001, 65_500, 65_535, 65_536, 65_537, 70_000, 300_000)
    .map((size) => bytes(`{"naam":"${'x'.repeat(Math.max(0, size - 11))}"}`));
  const deep = fc
    .tuple(fc.constantFrom(19, 20, 21, 1000, 10_000), fc.constantFrom(['[', '', ']'], ['{"a":', '1', '}']))
    .map(([depth, [open = '', middle = '', close = '']]) => bytes(open.repeat(depth) + middle + close.repeat(depth)));
  const many = fc
    .constantFrom(50, 5000)
    .map((count) => bytes(`{${Array.from({ length: count }, (_, n) => `"x${n}":1`).join()}}`));
  return weighted(
    [5, fc.constantFrom(...bodies)],
    [5, withMember(name)],
    [2, withMember(fc.constantFrom('', ...others))],
    [
      3,
      fc
        .tuple(valid, name, fc.jsonValue({ maxDepth: 3 }))
        .map(([body, each, value]) => json({ ...body, [each]: value })),
    ],
    [1, workspace.map(({ customers }) => json({ customerId: customers[0], naam: 'x' }))],
    [1, workspace.map(({ installations }) => json({ customerId: installations[0], naam: 'x' }))],
    [
      1,
      fc
        .tuple(name, fc.string({ unit: 'binary', maxLength: 300 }))
        .map(([each, text]) => json({ naam: 'x', [each]: text })),
    ],
    [1, workspace.map(({ tokens }) => json({ naam: 'x', access_token: tokens.all }))],
    [1, fc.jsonValue().map(json)],
    [1, fc.uint8Array({ maxLength: 200 }).map((array) => Buffer.from(array))],
    [4, sized],
    [1, deep],
    [1, many],
  );
}

function workspaceOf(world: World): fc.Arbitrary<FuzzWorkspace> {
  return fc.constantFrom(...world.workspaces);
}
