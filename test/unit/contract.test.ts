import test from 'ava';
import { checkOpenPoints } from '../../src/doctor/thorough/thorough.js';
import { loadResources } from '../../src/resource/definition/load.js';
import type { Resource } from '../../src/resource/definition/resource.js';
import { makeOpenApi } from '../../src/serve/openapi/openapi.js';
import { makeExamples } from '../../src/serve/openapi/values.js';
import { loadSettings } from '../../src/settings.js';
import { ContractViolation, contractValidator, type Exchange } from '../support/contract.js';
import { altered, load, owners } from '../support/definitions.js';

const resources = loadResources('');
const klanten = resources.find(({ name }) => name === 'klanten') as Resource;
const document = makeOpenApi(resources, {
  version: '1.0.0',
  ...loadSettings({}, { primaryUrls: 'postgres://primary/app' }),
});
const validate = contractValidator(document);

const everywhere = {
  'content-type': 'application/json; charset=utf-8',
  'x-request-id': 'r1',
  'api-version': '1.0.0',
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
};
const pagination = {
  page: 1,
  perPage: 100,
  count: 1,
  hasMore: false,
  nextCursor: null,
  endCursor: 'abc',
  next: null,
  complete: true,
};
const list: Exchange = {
  method: 'GET',
  path: '/api/v1/klanten?perPage=100',
  status: 200,
  headers: {
    ...everywhere,
    ratelimit: '"default";r=59;t=42',
    'ratelimit-policy': '"default";q=60;w=60',
    'server-timing': 'db;dur=1',
    'data-as-of': '2026-03-14T09:26:53.589Z',
    link: '</api/v1/klanten>; rel="first"',
    vary: 'Accept-Encoding',
  },
  body: JSON.stringify({ data: [makeExamples(klanten).recordExample], pagination }),
};
const problem: Exchange = {
  method: 'GET',
  path: '/api/v1/nothing',
  status: 404,
  headers: { ...everywhere, 'content-type': 'application/problem+json' },
  body: JSON.stringify({
    type: 'urn:workspace-data-api:problem:not_found',
    title: 'Not found',
    status: 404,
    detail: 'There is nothing here.',
    code: 'not_found',
    requestId: 'r1',
  }),
};
const address = makeExamples(klanten).recordExample.adres as object;
const record = (change: object): string =>
  JSON.stringify({ data: [{ ...makeExamples(klanten).recordExample, ...change }], pagination });
const without = (exchange: Exchange, name: string): Exchange => {
  const { [name]: _, ...headers } = exchange.headers as Record<string, string>;
  return { ...exchange, headers };
};

test('responses as documented pass', (t) => {
  t.notThrows(() => validate(list));
  t.notThrows(() => validate({ ...list, method: 'HEAD', body: '' }));
  t.notThrows(() => validate({ ...list, body: record({ naam: null, decodeErrors: ['/naam'] }) }));
  t.notThrows(() => validate(problem));
});

const violations: readonly (readonly [name: string, exchange: Exchange, message: RegExp])[] = [
  ['a member too many', { ...list, body: record({ email: 'x@example.com' }) }, /unevaluated properties.*email/],
  ['a member too many in a group', { ...list, body: record({ adres: { ...address, lat: 1 } }) }, /unevaluated.*lat/],
  ['a member too many in pagination', { ...list, body: list.body.replace('"page":', '"pages":9,"page":') }, /"pages"/],
  ['a member too many beside data', { ...list, body: list.body.replace('{', '{"meta":{},') }, /unevaluated.*meta/],
  ['a member too many in a problem', { ...problem, body: problem.body.replace('{', '{"sql":"",') }, /unevaluated.*sql/],
  ['a member missing', { ...list, body: record({ naam: undefined }) }, /required property 'naam'/],
  [
    'a timestamp without milliseconds',
    { ...list, body: record({ createdAt: '2026-03-14T09:26:53Z' }) },
    /createdAt.*pattern/,
  ],
  ['a wrong count', { ...list, body: list.body.replace('"count":1', '"count":2') }, /not the number of records/],
  ['a list cut short', { ...list, body: list.body.slice(0, -1) }, /not JSON/],
  [
    'hasMore without next',
    { ...list, body: list.body.replace('"hasMore":false', '"hasMore":true') },
    /next.*(string|null)/,
  ],
  ['a header missing', without(list, 'x-request-id'), /header x-request-id: missing/],
  [
    'a header with another value',
    { ...list, headers: { ...list.headers, 'cache-control': 'private' } },
    /header cache-control/,
  ],
  [
    'a header without a description',
    { ...list, headers: { ...list.headers, 'x-powered-by': 'x' } },
    /x-powered-by: not described/,
  ],
  [
    'another media type',
    { ...list, headers: { ...list.headers, 'content-type': 'text/html' } },
    /content type text\/html/,
  ],
  ['a status without a description', { ...list, status: 418 }, /no such status/],
  ['a body to HEAD', { ...list, method: 'HEAD' }, /HEAD has a body/],
  ['a code of another status', { ...problem, body: problem.body.replaceAll('not_found', 'internal') }, /\/code/],
  ['the identifier of another request', { ...problem, body: problem.body.replace('"r1"', '"r2"') }, /requestId/],
  ['204 to another method than OPTIONS', { ...problem, status: 204 }, /no such status/],
  ['an unknown path that answers', { ...list, path: '/api/v1/klanten/' }, /no such status/],
];
for (const [name, exchange, message] of violations) {
  test(`${name} is a violation`, (t) => {
    t.throws(() => validate(exchange), { instanceOf: ContractViolation, message });
  });
}

test('check warns of each guess in a definition, with its place, its file and the advice', (t) => {
  const guessed = altered(owners, 'fields/name/description', 'OPEN: it may be a nickname.');
  const [resource] = load({ 'owners.json': guessed });
  const items = checkOpenPoints(resource as Parameters<typeof checkOpenPoints>[0]);
  t.like(items[0], { level: 'warning', code: 'open_points', object: 'owners' });
  t.regex(
    items[0]?.detail ?? '',
    /^[/]fields[/]name[/]description: it may be a nickname; the definition is .*owners[.]json[.]$/,
  );
  t.is(items.length, 1);
});

test('check warns of nothing in a definition without a guess', (t) => {
  t.deepEqual(load({ 'owners.json': owners }).flatMap(checkOpenPoints), []);
});
