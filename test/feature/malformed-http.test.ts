import { connect } from 'node:net';
import { type ProblemCode, problems } from '../../src/base/errors.js';
import { rawRequest } from '../support/client.js';
import { faultsOf, type Page, codeOf as problemOf } from '../support/lists.js';
import { gatewayTest } from '../support/workspace.js';

const test = gatewayTest({ headersTimeoutMs: 500, requestTimeoutMs: 1000 });

async function send(url: string, text: string, host = '127.0.0.1') {
  const answer = await rawRequest(Number(new URL(url).port), text, 30_000, host);
  const [head = '', ...bodies] = answer.split('\r\n\r\n');
  const [statusLine = '', ...lines] = head.split('\r\n');
  const headers = Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 2)]),
  );
  return { answer, status: Number(statusLine.split(' ')[1]), headers, body: bodies.join('\r\n\r\n') };
}

function sendInParts(url: string, [first, second]: [string, string]): Promise<string> {
  return new Promise((resolve) => {
    let received = '';
    const socket = connect(Number(new URL(url).port), '127.0.0.1', () => socket.write(first));
    socket.once('data', () => socket.write(second));
    socket.on('data', (bytes) => {
      received += bytes;
    });
    socket.on('error', () => {});
    socket.on('close', () => resolve(received));
  });
}

const get = 'GET /api/v1/klanten HTTP/1.1\r\n';
const closing = 'Host: a\r\nConnection: close\r\n\r\n';
const cases: [what: string, code: ProblemCode, text: string][] = [
  ['no Host header', 'invalid_request', `${get}Connection: close\r\n\r\n`],
  ['two Host headers', 'invalid_request', `${get}Host: a\r\n${closing}`],
  ['a Host that is none', 'invalid_request', `${get}Host: a b/c\r\nConnection: close\r\n\r\n`],
  ['a Host no address can have', 'invalid_request', `${get}Host: [a]\r\nConnection: close\r\n\r\n`],
  ['a Host with a port that is none', 'invalid_request', `${get}Host: a:99999\r\nConnection: close\r\n\r\n`],
  ['an address that is none', 'invalid_request', `GET http:///api HTTP/1.1\r\n${closing}`],
  ['a fragment', 'invalid_request', `GET /api/v1/klanten#x HTTP/1.1\r\n${closing}`],
  ['a target not in ASCII', 'invalid_request', `GET /api/v1/klanten\xa0 HTTP/1.1\r\n${closing}`],
  ['an empty Host', 'invalid_request', `${get}Host:\r\nConnection: close\r\n\r\n`],
  ['a request line that is none', 'invalid_request', 'HELLO\r\n\r\n'],
  ['a request line without a version', 'invalid_request', `GET /api/v1/klanten\r\n${closing}`],
  ['an HTTP version that does not exist', 'invalid_request', 'GET /api/v1/klanten HTTP/9.9\r\nHost: a\r\n\r\n'],
  ['TLS on the plain port', 'invalid_request', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03'],
  ['a header line without a colon', 'invalid_request', `${get}Host: a\r\nnonsense\r\n\r\n`],
  ['a header name with a space', 'invalid_request', `${get}Host: a\r\nX Y: z\r\n\r\n`],
  ['a NUL in a header', 'invalid_request', `${get}Host: a\r\nX-Y: a\0b\r\n\r\n`],
  [
    'both lengths, as smugglers send',
    'invalid_request',
    `${get}Host: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
  ],
  [
    'a transfer coding that does not exist',
    'not_implemented',
    `POST /api/v1/installaties HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\n\r\n`,
  ],
  [
    'a transfer coding before chunked',
    'not_implemented',
    `POST /api/v1/installaties HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n`,
  ],
  ['two lengths', 'invalid_request', `${get}Host: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n`],
  ['a header of 20 KB', 'headers_too_large', `${get}Host: a\r\nX-Long: ${'x'.repeat(20_000)}\r\n\r\n`],
  ['many headers', 'headers_too_large', `${get}Host: a\r\n${'X-Many: 1234567890\r\n'.repeat(1500)}\r\n`],
  ['a target of 6 KB', 'uri_too_long', `GET /api/v1/klanten?x=${'x'.repeat(6000)} HTTP/1.1\r\n${closing}`],
  [
    'an expectation that cannot be met',
    'expectation_failed',
    `${get}Host: a\r\nExpect: foo\r\nConnection: close\r\n\r\n`,
  ],
  ['an unknown method', 'method_not_allowed', `FOO /api/v1/klanten HTTP/1.1\r\n${closing}`],
  ['a method in lower case', 'method_not_allowed', `get /api/v1/klanten HTTP/1.1\r\n${closing}`],
  ['CONNECT', 'method_not_allowed', 'CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n'],
  ['a header that does not end', 'request_timeout', `${get}Host: a\r\nX-Slow: `],
];

for (const [what, code, text] of cases) {
  const { status } = problems[code];
  test(`${what}: a problem with the common headers, and the connection closes`, async (t) => {
    const reply = await send(t.context.gateway.url, text);
    t.is(reply.status, status, reply.answer.slice(0, 300));
    t.is(reply.headers['content-type'], 'application/problem+json');
    const problem = JSON.parse(reply.body) as Record<string, unknown>;
    t.like(problem, { status, code, type: `urn:workspace-data-api:problem:${code}` });
    t.is(problem.requestId, reply.headers['x-request-id']);
    t.regex(reply.headers['api-version'] as string, /^1\./);
    t.is(reply.headers['cache-control'], 'no-store');
    t.is(reply.headers['x-content-type-options'], 'nosniff');
    t.is(reply.headers['content-security-policy'], "default-src 'none'; frame-ancestors 'none'");
    t.is(reply.headers['referrer-policy'], 'no-referrer');
    if (status === 405) t.regex(reply.headers.allow as string, /GET/);
    t.notRegex(reply.body, /HPE_|stack|node:|Error:/);
  });
}

test('a fault behind the head of a request that was answered causes no second answer', async (t) => {
  const wrong = 'Expect: nothing\r\nTransfer-Encoding: x\r\n\r\n';
  const reply = await send(t.context.gateway.url, `${get}Host: a\r\n${wrong}`);
  t.is(reply.status, 417);
  t.false(reply.body.includes('HTTP/1.1'));
});

const patch = 'PATCH /api/v1/installaties/x HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer TOKEN\r\n';
const unread: [status: number, head: string][] = [
  [417, `${get}Host: a\r\nExpect: foo\r\n`],
  [401, 'POST /api/v1/installaties HTTP/1.1\r\nHost: a\r\n'],
  [413, `${patch}Content-Type: application/json\r\n`],
  [404, 'DELETE /nothing HTTP/1.1\r\nHost: a\r\n'],
];
for (const [status, head] of unread) {
  test(`${status} before the body has arrived: a client that closes the connection behind it has the whole answer`, async (t) => {
    const { gateway, token } = t.context;
    const text = `${head.replace('TOKEN', token)}Connection: close\r\nContent-Length: 100000\r\n\r\n`;
    const reply = await sendInParts(gateway.url, [text, `${'x'.repeat(100_000)}${get}Host: a\r\n\r\n`]);
    t.regex(reply, new RegExp(`^HTTP/1\\.1 ${status} `));
    t.regex(reply, /\r\nConnection: close\r\n/i);
    t.is(reply.match(/HTTP\/1\.1 /g)?.length, 1);
    t.regex(reply, /\}$/, 'the answer arrives whole although the body was not read');
  });
}

test('an answer before the whole body keeps the connection', async (t) => {
  const head = 'POST /api/v1/installaties HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n';
  const rest = `${'x'.repeat(100_000)}${get}Host: a\r\nConnection: close\r\n\r\n`;
  const answer = await sendInParts(t.context.gateway.url, [head, rest]);
  t.is(answer.match(/HTTP\/1\.1 401/g)?.length, 2);
});

test('OPTIONS keeps the connection, and what is behind it is answered', async (t) => {
  const options = 'OPTIONS /api/v1/klanten HTTP/1.1\r\nHost: a\r\n\r\n';
  const { answer } = await send(t.context.gateway.url, `${options}${options}${get}${closing}`);
  const statuses = [...answer.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status);
  t.deepEqual(statuses, ['204', '204', '401']);
});

test('a request behind an answer that closes the connection is not begun', async (t) => {
  const { gateway, client, log } = await t.context.database.gateway({ largePagesPerWorkspace: 1 });
  const token = await t.context.database.token();
  const closing = 'POST /api/v1/installaties HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n';
  const page = `GET /api/v1/klanten?perPage=10000 HTTP/1.1\r\nHost: a\r\nX-Request-Id: behind\r\nAuthorization: Bearer ${token}\r\n\r\n`;
  const { answer } = await send(gateway.url, `${closing}${page}`);
  t.deepEqual(answer.match(/HTTP\/1\.1 \d+/g), ['HTTP/1.1 501']);
  t.is((await client.get('/klanten?perPage=10000')).status, 200, 'it holds no large page');
  const metrics = await (await fetch(`${gateway.opsUrl}/metrics`)).text();
  t.regex(metrics, /^gateway_requests_in_flight 0$/m);
  t.false(log().includes('"requestId":"behind"'));
});

test('the answer to a malformed request comes after the answers to the requests before it', async (t) => {
  const page = `GET /api/v1/werkbonnen?perPage=2000 HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${t.context.token}\r\n\r\n`;
  const wrong = ['NOT HTTP\r\n\r\n', `${get}Host: a\r\nX Y: z\r\n\r\n`, 'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n'];
  for (const malformed of wrong) {
    const { answer } = await send(t.context.gateway.url, `${page}${page}${malformed}`);
    const statuses = [...answer.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status);
    t.deepEqual(statuses, ['200', '200', malformed.startsWith('CONNECT') ? '405' : '400']);
    t.is(answer.match(/"complete":true\}\}/g)?.length, 2);
  }
});

test('a client that keeps sending after such an answer, and never closes, is disconnected', async (t) => {
  const socket = connect({ port: Number(new URL(t.context.gateway.url).port), host: '127.0.0.1', allowHalfOpen: true });
  socket.on('error', () => {});
  socket.resume();
  const closed = new Promise((resolve) => socket.once('close', () => resolve('closed')));
  socket.write('CONNECT example.com:443 HTTP/1.1\r\nHost: a\r\n\r\n');
  const talking = setInterval(() => socket.write('more'), 50);
  t.teardown(() => clearInterval(talking));
  t.is(await closed, 'closed');
  socket.destroy();
});

test('a token sent as request id is neither kept nor logged', async (t) => {
  const { client, token, log } = t.context;
  const reply = await client.get('/klanten?perPage=1', { headers: { 'x-request-id': token } });
  t.is(reply.status, 200);
  t.not(reply.headers['x-request-id'], token);
  t.false(log().includes(token));
});

test('HTTP/1.0 without a Host is answered', async (t) => {
  const reply = await send(t.context.gateway.url, 'GET /api/v1/openapi.json HTTP/1.0\r\n\r\n');
  t.is(reply.status, 200);
});

test('links to an IPv6 address have it in brackets, also for HTTP/1.0 without a Host', async (t) => {
  const { gateway, token } = await t.context.database.gateway({ host: '::1' });
  const request = `GET /api/v1/klanten?perPage=1 HTTP/1.0\r\nAuthorization: Bearer ${token}\r\n\r\n`;
  const { body } = await send(gateway.url, request, '::1');
  const { next } = (JSON.parse(body) as Page).pagination;
  t.is(new URL(next as string).origin, gateway.url);
});

test('a target in absolute form, and Expect: 100-continue, are answered as usual', async (t) => {
  const { gateway, token } = t.context;
  const path = '/api/v1/klanten?perPage=1';
  const rest = `Host: a\r\nAuthorization: Bearer ${token}\r\nConnection: close\r\n`;
  const expecting = await send(gateway.url, `GET ${path} HTTP/1.1\r\n${rest}Expect: 100-continue\r\n\r\n`);
  t.is(expecting.answer.match(/HTTP\/1\.1 200/g)?.length, 1);
  const large = `POST /api/v1/installaties HTTP/1.1\r\nHost: a\r\nContent-Length: 999999999\r\nExpect: 100-continue\r\n`;
  for (const [status, authorization] of [
    [401, ''],
    [415, `Authorization: Bearer ${token}\r\n`],
  ] as const)
    t.regex(
      (await send(gateway.url, `${large}${authorization}Connection: close\r\n\r\n`)).answer,
      new RegExp(`^HTTP/1.1 ${status} `),
    );
  const absolute = await send(gateway.url, `GET http://b.example:81${path} HTTP/1.1\r\n${rest}\r\n`);
  t.is(absolute.status, 200);
  t.regex(
    absolute.answer,
    /"next":"http:\/\/b\.example:81\/api/,
    'links lead to the host of the target, not of the Host header',
  );
  for (const host of ['user@a', 'a:99999', 'a b'])
    t.is((await send(gateway.url, `GET http://${host}${path} HTTP/1.1\r\n${rest}\r\n`)).status, 400, host);
});

test('pipelined requests are answered one after the other, each with its own id', async (t) => {
  const one = `GET /api/v1/klanten/x HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${t.context.token}\r\n`;
  const two = `${one}\r\n${one}X-Request-Id: tweede\r\nConnection: close\r\n\r\n`;
  const { answer } = await send(t.context.gateway.url, two);
  const ids = [...answer.matchAll(/x-request-id: (\S+)/gi)].map(([, id]) => id);
  t.is(ids.length, 2);
  t.is(ids[1], 'tweede');
});

test('a body on GET changes nothing', async (t) => {
  const { client } = t.context;
  const [plain, withBody] = [
    await client.get('/klanten?perPage=2'),
    await client.get('/klanten?perPage=2', { body: { perPage: 5 } }),
  ];
  t.deepEqual(withBody.json<Page>().data, plain.json<Page>().data);
});

test('a long target within the limit is checked, and its faults are named', async (t) => {
  const reply = await t.context.client.get(`/klanten?${'x'.repeat(3000)}=1`);
  t.is(problemOf(reply), 'invalid_request');
  t.is(faultsOf(reply)[0], `${'x'.repeat(100)} unknown_parameter`);
});
