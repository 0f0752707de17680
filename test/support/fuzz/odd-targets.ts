import fc from 'fast-check';
import { cursorContext, encodeCursor } from '../../../src/read/page-ends.js';
import { listNames } from '../lists.js';
import type { Harvest } from './harvest.js';
import { oddBytes } from './odd-headers.js';
import { apiPath } from './right.js';
import type { World } from './world.js';

/** Bytes that end a request target would make another request of it. */
const inTarget = (text: string): string => text.replace(/[\s\0]/g, '');

/** Paths and whole targets that lead nowhere, or not where they seem to. */
export function oddTargets(world: World): fc.Arbitrary<string> {
  const ids = fc
    .constantFrom(...world.workspaces)
    .chain(({ customers, installations, workOrders }) =>
      fc.constantFrom(...customers.slice(0, 5), ...installations.slice(0, 5), ...workOrders.slice(0, 5)),
    );
  const resource = fc.constantFrom(...listNames, 'gebruikers', 'api_tokens', 'openapi.json');
  const around = (make: (list: string, id: string) => string): fc.Arbitrary<string> =>
    fc.tuple(resource, ids).map(([list, id]) => make(list, id));
  const paths: readonly ((list: string, id: string) => string)[] = [
    (list, id) => `${apiPath}/${list}/${id}`,
    (list, id) => `${apiPath}/${list}/${id.toUpperCase()}`,
    (list, id) => `${apiPath}/${list}/${id}/`,
    (list, id) => `${apiPath}/${list}/${id}/werkbonnen`,
    (list, id) => `${apiPath}/${list}/${id};v=1`,
    (list, id) => `${apiPath}/${list}/${id}%20`,
    (list, id) => `${apiPath}/${list}/${id}%00`,
    (list, id) => `${apiPath}/${list}/${id}'%20or%201=1--`,
    (list, id) => `${apiPath}/${list}/${id.replaceAll('-', '')}`,
    (list, id) => `${apiPath}/${list}/%7B${id}%7D`,
    (list, id) => `${apiPath}/${list}/${encoded(id)}`,
    (list) => `${apiPath}/${list}/`,
    (list) => `${apiPath}//${list}`,
    (list) => `/api//v1/${list}`,
    (list) => `//${list}`,
    (list) => `//evil.example${apiPath}/${list}`,
    (list) => `http://evil.example${apiPath}/${list}`,
    (list) => `${apiPath}/${encoded(list)}`,
    (list) => `${apiPath.toUpperCase()}/${list}`,
    (list) => `${apiPath}/${list.toUpperCase()}`,
    (list) => `${apiPath}/${list}/../klanten`,
    (list) => `${apiPath}/${list}/%2e%2e/klanten`,
    (list) => `${apiPath}/${list}/..%2f..%2fmetrics`,
    (list) => `${apiPath}/./${list}`,
    (list) => `${apiPath}/${list}#x`,
    (list) => `${apiPath}/${list}?#x`,
    (list) => `${apiPath}\\${list}`,
    (list) => `${apiPath}/${list};x`,
    (list) => `${apiPath}/${list}%3FperPage=1`,
    (list) => `${apiPath}/${list}/%`,
    (list) => `${apiPath}/${list}/%zz`,
    (list) => `${apiPath}/${list}/%ff%c0%80`,
    (list) => `${apiPath}/${list}/%2F`,
    (list) => `${apiPath}/${list}/__proto__`,
    (list) => `${apiPath}/${list}/constructor`,
    (list) => `${apiPath}/${list}/${'a'.repeat(3000)}`,
    (list) => `${apiPath}/${list}/${'a'.repeat(6000)}`,
    (list) => `${apiPath}/${list}/1`,
    (list) => `/api/v2/${list}`,
    (list) => `api/v1/${list}`,
    (list) => `http://[${apiPath}/${list}`,
    (list) => `http://a:b@c:99999${apiPath}/${list}`,
  ];
  return fc.oneof(
    { weight: 12, arbitrary: fc.constantFrom(...paths).chain(around) },
    {
      weight: 3,
      arbitrary: fc.constantFrom(
        ...[
          '/',
          '*',
          '?',
          '/?',
          '//',
          '//[',
          '/[',
          '/.',
          '/..',
          '/%',
          '/\\',
          'x',
          '[::1]',
          'a:1',
          'http://',
          'http://[',
        ],
        ...['/metrics', '/livez', '/readyz', '/docs', '/.env', '/favicon.ico', '/api', apiPath, `${apiPath}/`],
      ),
    },
    { weight: 1, arbitrary: oddBytes.map((text) => `/${inTarget(text)}`) },
    { weight: 1, arbitrary: oddBytes.map((text) => `${apiPath}/klanten/${inTarget(text)}`) },
  );
}

/** Query parameters as they stand in a target, without the "?" or "&" before them: mostly invalid ones. */
export function oddParameters(world: World, harvest: Harvest): fc.Arbitrary<string> {
  const workspaces = fc.constantFrom(...world.workspaces);
  const id = workspaces.chain(({ customers, installations }) => fc.constantFrom(...customers, ...installations));
  const names = [
    'page',
    'perPage',
    'total',
    'cursor',
    'customerId',
    'installationId',
    'entity',
    'entityId',
    'from',
    'to',
    'ids',
    'order',
    'updatedSince',
    'status',
    'serienummer',
    'actie',
  ];
  const numbers = [
    '0',
    '-1',
    '1e3',
    '%2B1',
    '0x10',
    '%207',
    '1.0',
    '99999999999999999999',
    '999999999',
    '1000',
    '10000',
    '10001',
    '٣',
    'NaN',
  ];
  const days = [
    '2026-02-30',
    '0000-01-01',
    '0001-01-01',
    '9999-12-31',
    '10000-01-01',
    '2026-2-3',
    '2026-03-29',
    'infinity',
    'now',
    '20260101',
    '2026-01-01T00:00:00Z',
    '-0044-03-15',
  ];
  const texts = [
    '',
    '%00',
    'a%00b',
    '%ff',
    '%c0%80',
    '%ed%a0%80',
    '%',
    '%zz',
    '%E2%82%AC',
    '+',
    "'",
    '%27%20or%201=1%20--',
    '1;select%20pg_sleep(1)',
    '\xff',
    '{}',
    '[]',
    'null',
    'true',
    'TRUE',
    '$1',
  ];
  const name = fc.constantFrom(...names);
  return fc.oneof(
    fc.tuple(fc.constantFrom('page', 'perPage'), fc.constantFrom(...numbers)).map((pair) => pair.join('=')),
    fc.tuple(fc.constantFrom('from', 'to', 'updatedSince'), fc.constantFrom(...days)).map((pair) => pair.join('=')),
    fc.tuple(name, fc.constantFrom(...texts)).map((pair) => pair.join('=')),
    fc.tuple(name, fc.constantFrom(...numbers, ...days, ...texts)).map((pair) => pair.join('=')),
    fc.tuple(fc.constantFrom('customerId', 'installationId', 'entityId'), id).map((pair) => pair.join('=')),
    cursors(world, harvest).map((cursor) => `cursor=${cursor}`),
    cursors(world, harvest).map((cursor) => `cursor=${cursor}`),
    fc.tuple(name, oddBytes).map(([each, text]) => `${each}=${encodeURIComponent(text)}`),
    fc.tuple(name, oddBytes).map(([each, text]) => `${each}=${inTarget(text)}`),
    fc.tuple(name, fc.constantFrom(900, 3000, 5000)).map(([each, length]) => `${each}=${'x'.repeat(length)}`),
    workspaces.map(({ tokens }) => `access_token=${tokens.all}`),
    workspaces.map((workspace) => `workspace_id=${workspace.id}`),
    fc.constantFrom(
      '&&&',
      '=',
      '=1',
      'page',
      '__proto__=1',
      'constructor=1',
      'toString',
      'page[]=1',
      'page[$gt]=1',
      'limit=1',
      'PAGE=1',
      '%70age=1',
      'x=1'.repeat(100),
      'x=1&'.repeat(200),
    ),
  );
}

const moments = [
  '2020-01-01 00:00:00+00',
  '0001-01-01 00:00:00+00',
  '9999-12-31 23:59:59.999999+00',
  '2020-01-01 24:00:00+00',
  '0044-03-15 00:00:00+00 BC',
  'infinity',
  '2020-01-01',
  '9999-12-31',
  '',
  "' or 1=1 --",
  '\0',
  '2020-01-01 00:00:00+01',
];
const lasts = [
  '00000000-0000-0000-0000-000000000000',
  'ffffffff-ffff-ffff-ffff-ffffffffffff',
  '0',
  '-1',
  '-0',
  '9223372036854775807',
  '-9223372036854775808',
  '9223372036854775808',
  '1',
  'x',
  '',
  '\0',
  '1\n2',
];

/** Keys that a forged cursor may carry: those of the lists, their extremes, and what is none. */
export const forgedKeys: fc.Arbitrary<readonly [string, string]> = fc.tuple(
  fc.constantFrom(...moments),
  fc.constantFrom(...lasts),
);

/** The cursor that a client would get who knows how cursors are made, for the list, filters and workspace it asks for. */
export function forgedFor(target: string, workspaceId: string, key: readonly [string, string]): string {
  const [path = '', query = ''] = target.split('?');
  const filters = [...new URLSearchParams(query)].filter(
    ([name]) => !['page', 'perPage', 'total', 'cursor'].includes(name),
  );
  const context = cursorContext(workspaceId, path.split('/').at(-1) ?? '', Object.fromEntries(filters));
  return encodeCursor(context, { key, asOfMs: Date.now() });
}

/** Cursors of this and other lists and workspaces, damaged ones, and forged ones whose digest is right. */
function cursors(world: World, harvest: Harvest): fc.Arbitrary<string> {
  const forged = fc
    .tuple(fc.constantFrom(...world.workspaces), fc.constantFrom(...listNames), forgedKeys)
    .map(([{ id }, list, key]) => encodeCursor(cursorContext(id, list, {}), { key, asOfMs: null }));
  const given = fc.nat({ max: 499 }).map((number) => harvest.cursors.pick(number)?.cursor ?? 'AAAAAAAAAAAAAAAA');
  const damaged = fc
    .tuple(given, fc.nat({ max: 60 }), fc.constantFrom('A', 'b', '_', '-', '=', '+', '%00', ''))
    .map(([cursor, at, by]) => cursor.slice(0, at) + by + cursor.slice(at + 1));
  return fc.oneof(
    forged,
    given,
    damaged,
    given.map((cursor) => cursor + cursor),
    given.map((cursor) => `${cursor}=`),
  );
}

function encoded(text: string): string {
  return [...Buffer.from(text)].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('');
}
