import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { constants } from 'node:os';
import type { Duplex } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { getSystemErrorMap } from 'node:util';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import type { ExecutionContext } from 'ava';
import test from 'ava';
import fc from 'fast-check';
import Koa from 'koa';
import pg from 'pg';
import { Problem, type ProblemCode, problems } from '../../src/base/errors.js';
import type { Event } from '../../src/base/events.js';
import {
  ConnectionLost,
  getCorrection,
  getDatabaseErrorKind,
  getReason,
  getRefusal,
  getSqlState,
} from '../../src/postgres/database-errors.js';
import { parseEntityTags } from '../../src/serve/entity-tags.js';
import { getAddressKey } from '../../src/serve/http/admit.js';
import { chooseEncoding } from '../../src/serve/http/content-encodings.js';
import { FixedBody } from '../../src/serve/http/descriptions.js';
import { startExchange } from '../../src/serve/http/exchange.js';
import { drain, listen } from '../../src/serve/http/listeners.js';
import { respond, send } from '../../src/serve/http/respond.js';
import { ChunkMemory } from '../../src/serve/read/chunk-memory.js';
import type { Piece } from '../../src/serve/reply.js';
import { bodyDepthMax, parseStrictJson, type StrictJson } from '../../src/serve/write/strict-json.js';
import { nested } from '../support/malformed-json.js';
import { limitMs } from '../support/patience.js';
import { words } from '../support/words.js';

test('an error response has each header once, also when Node.js refused the head of the response before it', async (t) => {
  const koa = new Koa();
  koa.use((ctx) => {
    ctx.respond = false;
    ctx.state.exchange = startExchange(ctx.req, ['API-Version', '1']);
    t.throws(() => send(ctx, 200, 'refused', { Location: 'a\nb' }), { code: 'ERR_INVALID_CHAR' });
    send(ctx, 500, '{}');
  });
  const server = koa.listen(0, '127.0.0.1');
  t.teardown(() => server.close());
  await new Promise((resolve) => server.once('listening', resolve));
  const response = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
  t.deepEqual([response.status, await response.text()], [500, '{}']);
  t.is(response.headers.get('Content-Length'), '2');
  t.is(response.headers.get('API-Version'), '1');
  t.is(response.headers.get('Location'), null);
});

for (const encoding of ['identity', 'gzip'])
  for (const code of ['ECONNRESET', 'EPIPE', 'ECANCELED', ...(encoding === 'identity' ? ['EIO'] : [])])
    test(`a page whose connection fails with ${code} ${code === 'EIO' ? 'is broken' : 'is not, because the client left'}: ${encoding}`, async (t) => {
      const events: Event[] = [];
      let responded = (): void => {};
      const ended = new Promise<void>((resolve) => {
        responded = resolve;
      });
      const koa = new Koa();
      koa.silent = true;
      koa.use(async (ctx) => {
        ctx.respond = false;
        ctx.state.exchange = startExchange(ctx.req, []);
        const pieces = async function* (): AsyncGenerator<Piece> {
          const failure = Object.assign(new Error(`write ${code}`), { code });
          for (let i = 0; i < 20; i++) {
            if (i === 10)
              ctx.req.socket._write = ctx.req.socket._writev = (_: unknown, ...rest: unknown[]) =>
                (rest.at(-1) as (error: Error) => void)(failure);
            yield { bytes: randomBytes(100_000) };
          }
        };
        await respond(ctx, { status: 200, headers: {}, body: pieces(), databaseMs: 0 }, true, {
          observe: (event) => events.push(event),
          pageTimeMaxMs: 60_000,
          reads: { chunkMemory: new ChunkMemory() },
        });
        responded();
      });
      const server = koa.listen(0, '127.0.0.1');
      t.teardown(() => server.close());
      await once(server, 'listening');
      const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
      client.on('error', () => {});
      client.resume();
      client.write(`GET / HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: ${encoding}\r\n\r\n`);
      await ended;
      const types = events.map(({ type }) => type);
      t.deepEqual(types, code === 'EIO' ? ['page_broken'] : []);
    });

// Headers that a client writes as it likes: with time in the square of its length, one of 15 KB would take 200 ms, and these minutes.

const many = (text: string): string => text.repeat(1_000_000 / text.length);

const cases: Record<string, () => unknown> = {
  'Accept-Encoding with semicolons': () => chooseEncoding(`gzip${many(';')}`),
  'Accept-Encoding with weights': () => chooseEncoding(`gzip${many(';q=')}`),
  'Accept-Encoding with spaces': () => chooseEncoding(`gzip${many(' ')};q=1`),
  'If-None-Match with spaces': () => parseEntityTags(`"a",${many(' ')}x`),
  'If-None-Match with spaces behind a tag': () => parseEntityTags(`"a"${many(' ')}x`),
  'If-None-Match with a tag that does not end': () => parseEntityTags(`W/"${many('a')}`),
};

for (const [what, parse] of Object.entries(cases))
  test(`${what}: a million characters are taken apart in time in proportion`, (t) => {
    const startedMs = performance.now();
    parse();
    t.true(performance.now() - startedMs < limitMs(5000));
  });

test('the last weight of an encoding counts, and other parameters do not', (t) => {
  for (const [header, chosen] of [
    ['gzip;q=0.5;x=1', 'gzip'],
    ['gzip;x=1;q=0', undefined],
    ['br;q=0.1, gzip;x=2;q=0.9', 'gzip'],
    ['gzip;q=a', undefined],
  ] as const)
    t.is(chooseEncoding(header)?.name, chosen, header);
});

// More than the buffers of the system hold, so that most of an answer waits in the process.
const answer = Buffer.alloc(32 << 20, 'a');

async function clientOf(t: ExecutionContext, server: Server, request: string): Promise<Socket> {
  const url = await listen(server, '127.0.0.1', 0);
  const client = connect(Number(new URL(url).port), '127.0.0.1');
  t.teardown(() => client.destroy());
  client.write(request);
  return client;
}

test('a stop waits until a slow client has an answer whose last byte was handed over long before', async (t) => {
  const server = createServer((_, response) => response.end(answer));
  const client = await clientOf(t, server, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  client.pause();
  await once(server, 'request');
  const stopped = drain(server, 20_000);
  await sleep(300);
  let received = 0;
  client.on('data', (bytes) => (received += bytes.length)).resume();
  await Promise.all([stopped, once(client, 'close')]);
  t.true(received > answer.length, `${received} bytes`);
});

test('a stop breaks what is left after its time, also a connection that Node gave away at CONNECT', async (t) => {
  const server = createServer();
  server.on('connect', (_, socket: Duplex) => socket.on('error', () => undefined));
  const client = await clientOf(t, server, 'CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n');
  await once(server, 'connect');
  const ending = new Promise((resolve) => client.resume().on('error', resolve));
  await drain(server, 100);
  t.like(await ending, { code: 'ECONNRESET' });
});

function fromPostgres(code: string, origin: object = {}): Error {
  const error = new pg.DatabaseError('as PostgreSQL says it', 1, 'error');
  return Object.assign(error, { code, severity: 'ERROR', ...origin });
}

test('an error of the operating system or of Node is never taken for an SQLSTATE, whatever its code looks like', (t) => {
  const names = new Set([...Object.keys(constants.errno), ...[...getSystemErrorMap().values()].map(([name]) => name)]);
  t.true(names.has('EPIPE') && names.has('E2BIG') && names.size > 70);
  for (const code of [...names, 'ERR_STREAM_DESTROYED', 'ERR_SSL_WRONG_VERSION_NUMBER']) {
    const error = Object.assign(new Error(code), { code, errno: -1, syscall: 'write' });
    t.is(getSqlState(error), undefined, code);
    t.is(getDatabaseErrorKind(error), 'permanent', code); // those of a connection are ConnectionLost
  }
});

test('an SQLSTATE is read by its code, then by its class; all others are permanent', (t) => {
  const kinds = {
    '57014': 'timeout',
    '57P01': 'retry',
    '40001': 'retry',
    XX000: 'retry',
    '28P01': 'retry',
    '3D000': 'retry',
    '42P05': 'retry',
    '42601': 'permanent',
    EPIPE: 'permanent',
  };
  for (const [code, kind] of Object.entries(kinds)) t.is(getDatabaseErrorKind(fromPostgres(code)), kind as never, code);
});

test('a database that does not fit has a correction, and DDL under a prepared statement has none', (t) => {
  for (const code of ['42501', '428C9', '42P01', '42804', '23514', '0A000'])
    t.regex(getCorrection(fromPostgres(code)) ?? '', /^[A-Z].*: .*[.]$/, code);
  for (const code of ['40001', '57014', '22P02', 'XX000']) t.is(getCorrection(fromPostgres(code)), undefined, code);
  t.is(getDatabaseErrorKind(fromPostgres('0A000', { routine: 'RevalidateCachedQuery' })), 'retry');
  t.regex(getCorrection(fromPostgres('0A000', { routine: 'get_relation_info' })) ?? '', /UNLOGGED/);
});

const inTrigger = (language = 'PL/pgSQL function'): object => ({ where: `${language} app.f() line 3 at RAISE` });

test('what a function of the app raises is a rule of the app whatever its SQLSTATE, and is never repeated', (t) => {
  const code = fc.stringMatching(/^[0-9A-Z]{5}$/);
  const language = fc.constantFrom('PL/pgSQL function', 'PL/pgSQL-Funktion', 'fonction PL/pgSQL');
  const holds = fc.property(code, language, (state, words) => {
    const raised = fromPostgres(state, { routine: 'exec_stmt_raise', ...inTrigger(words) });
    return getDatabaseErrorKind(raised) === 'permanent' && getRefusal(raised)?.code === 'invalid';
  });
  t.notThrows(() => fc.assert(holds));
  for (const [state, file] of Object.entries({ U0001: 'plv8.cc', '40001': 'plpy_elog.c' }))
    t.is(getRefusal(fromPostgres(state, { file, where: 'PL/Python function "f"' }))?.code, 'invalid');
  const ofGateway = { routine: 'exec_stmt_raise', where: 'PL/pgSQL function gateway.f() line 3 at RAISE' };
  t.is(getRefusal(fromPostgres('23503', ofGateway))?.code, 'unknown_reference');
  for (const state of ['45000', 'PT422', 'U0001']) t.is(getRefusal(fromPostgres(state))?.code, 'invalid', state);
  for (const state of ['40P01', '40001', '55P03', '57P01'])
    t.is(getDatabaseErrorKind(fromPostgres(state, inTrigger())), 'retry', 'PostgreSQL itself, during a trigger');
  for (const state of ['0L000', '24000', '2F005', '3B001', '42601', 'HV000'])
    t.is(getRefusal(fromPostgres(state)), undefined, state);
});

test('an error within a function of the app has a correction of that function, never of the gateway', (t) => {
  const corrections: [string, RegExp][] = [
    ['42501', /SECURITY DEFINER/],
    ['42P01', /set search_path/],
    ['42704', /current_setting\(name, true\)/],
    ['2F005', /A function of the app/],
  ];
  for (const [state, words] of corrections) {
    const correction = getCorrection(fromPostgres(state, inTrigger())) ?? '';
    t.regex(correction, words, state);
    t.notRegex(correction, /`migrate`/, state);
  }
  t.is(getCorrection(fromPostgres('40P01', inTrigger())), undefined);
});

test('a lost connection has no code and is worth a retry; an error of the gateway itself is permanent', (t) => {
  t.is(getDatabaseErrorKind(new ConnectionLost('Connection terminated unexpectedly')), 'retry');
  t.is(getDatabaseErrorKind(new Error('of our own')), 'permanent');
  for (const Bug of [TypeError, RangeError, ReferenceError, SyntaxError])
    t.is(getDatabaseErrorKind(new Bug('x is not a function')), 'permanent', Bug.name);
});

test('the reason of a failure has the message of the gateway or of the connection, but of PostgreSQL only the SQLSTATE', (t) => {
  t.is(getReason(fromPostgres('22P02')), 'PostgreSQL error 22P02');
  t.is(getReason(fromPostgres('28P01')), 'PostgreSQL error 28P01: the password is wrong');
  t.is(getReason(new Error('the probe had no answer')), 'the probe had no answer');
});

test('a problem that asks for patience has its Retry-After from the table, unless the code that throws it knows better', (t) => {
  for (const code of Object.keys(problems) as ProblemCode[]) {
    const { status } = problems[code];
    const wanted = status === 429 || status === 503 || status === 409;
    t.is(/^[1-9]\d*$/.test(new Problem(code, '').headers['Retry-After'] ?? ''), wanted, code);
  }
  t.is(new Problem('overloaded', '', { headers: { 'Retry-After': '9' } }).headers['Retry-After'], '9');
});

const parse = (text: string | Buffer, depthMax = bodyDepthMax): StrictJson =>
  parseStrictJson(Buffer.from(text), depthMax);

test('text that JSON.stringify writes is read as JSON.parse reads it', (t) => {
  const value = fc
    .jsonValue({ maxDepth: 5 })
    .filter((json) => !/__proto__|\\u0000|\\ud[89a-f]/i.test(JSON.stringify(json)));
  fc.assert(
    fc.property(value, fc.constantFrom(0, 1, '\t'), (json, space) => {
      const text = JSON.stringify(json, null, space);
      t.is(JSON.stringify((parse(text) as { value: unknown }).value), JSON.stringify(JSON.parse(text)));
    }),
    { numRuns: 1000 },
  );
});

test('text that JSON.parse refuses is refused, however it was damaged', (t) => {
  fc.assert(
    fc.property(
      fc.json({ maxDepth: 3 }),
      fc.nat(),
      fc.constantFrom('', '"', ',', '}', '\u0001', '0', '-', 'e'),
      (json, at, by) => {
        const damaged = json.slice(0, at % (json.length + 1)) + by + json.slice((at % (json.length + 1)) + 1);
        try {
          JSON.parse(damaged);
        } catch {
          t.true('faults' in parse(damaged), damaged);
        }
      },
    ),
    { numRuns: 2000 },
  );
});

test('nesting has a bound, objects inherit nothing, and the faults of one body have a bound as well', (t) => {
  t.deepEqual(Object.keys(parse(nested(3), 3)), ['value']);
  t.deepEqual(Object.keys(parse(nested(4), 3)), ['faults']);
  const { value } = parse('{"a":1}') as { value: object };
  const inherited = ['a', 'toString', '__proto__'].filter((name) => name in value);
  t.deepEqual(inherited, ['a']);
  t.throws(() => Object.assign(Object.getPrototypeOf(value), { a: 1 }), { instanceOf: TypeError });
  const hostile = parse(`[${'"\\ud800",'.repeat(7000)}0]`) as { faults: object[] };
  t.true(hostile.faults.length > 100 && hostile.faults.length < 1000, String(hostile.faults.length));
});

test('a number is read only if JavaScript can hold all of it', (t) => {
  const numbers: readonly [string, number | null][] = [
    ['1.50', 1.5],
    ['15e-1', 1.5],
    ['-0', -0],
    ['0e9', 0],
    ['1E+2', 100],
    ['9007199254740991', 9007199254740991],
    ['9007199254740993', null],
    ['1e400', null],
    ['1e-400', null],
    ['0.1000000000000000055', null],
  ];
  for (const [literal, number] of numbers) {
    const read = parse(literal);
    if (number === null) t.true('faults' in read, literal);
    else t.is((read as { value: unknown }).value, number, literal);
  }
});

const text = JSON.stringify(Array.from({ length: 500 }, (_, i) => `installation ${i}`));

test('a document that could not be made is made at the next request', async (t) => {
  let fault: Error | null = new Error('EMFILE');
  let made = 0;
  const document = new FixedBody(async () => {
    if (fault !== null) throw fault;
    made++;
    return { text };
  });
  const replies = [document.reply(undefined), document.reply(undefined)];
  for (const reply of replies) await t.throwsAsync(reply, { message: 'EMFILE' });
  fault = null;
  for (let i = 0; i < 2; i++) t.is((await document.reply(undefined)).status, 200);
  t.is(made, 1);
});

const makeBody = (text: string): FixedBody => new FixedBody(async () => ({ text }));

test('every coding holds the text and has a strong ETag of its own, which another gateway gives as well', async (t) => {
  const decoded = { br: brotliDecompressSync, gzip: gunzipSync, identity: (bytes: Buffer) => bytes };
  const etags = new Set<string>();
  for (const encoding of ['br', 'gzip', undefined] as const) {
    const document = makeBody(text);
    const { status, headers, body } = await document.reply(encoding, undefined);
    t.is(status, 200);
    if (encoding) t.is((await document.reply(encoding, undefined)).body, body, 'it is compressed once');
    t.is(headers['Content-Encoding'], encoding);
    t.is(decoded[encoding ?? 'identity'](body as Buffer).toString(), text);
    t.regex(headers.ETag as string, /^"[\w-]{22}(?:-br|-gzip)?"$/);
    etags.add(headers.ETag as string);
    t.is((await makeBody(text).reply(encoding)).headers.ETag, headers.ETag);
  }
  t.is(etags.size, 3);
  t.not((await makeBody(`${text} `).reply(undefined)).headers.ETag, [...etags][2]);
});

test('an IPv4 address is counted by itself, also as an IPv4-mapped IPv6 address', (t) => {
  for (const ip of ['192.0.2.1', '::ffff:192.0.2.1', '::FFFF:c000:201', '0:0:0:0:0:ffff:192.0.2.1'])
    t.is(getAddressKey(ip), '192.0.2.1', ip);
});

test('IPv6 addresses of one /64 have one key, those of another /64 have another', (t) => {
  const key = '2001:db8:0:a::/64';
  for (const ip of words('2001:db8:0:a::1 2001:0DB8:0:000a:ffff:1:2:3 2001:db8::a:0:0:192.0.2.1 2001:db8:0:a::%eth0'))
    t.is(getAddressKey(ip), key, ip);
  for (const ip of ['2001:db8:0:b::1', '2001:db8::1', '::1', '::', '1::ffff:192.0.2.1'])
    t.not(getAddressKey(ip), key, ip);
  t.is(getAddressKey('::1'), '0:0:0:0::/64');
  t.is(getAddressKey('fe80::1%lo'), 'fe80:0:0:0::/64');
});

test('the port that some proxies add to an address does not count', (t) => {
  for (const ip of ['192.0.2.1:443', '192.0.2.1:50123', '[::ffff:192.0.2.1]:1'])
    t.is(getAddressKey(ip), '192.0.2.1', ip);
  for (const ip of ['[2001:db8:0:a::1]:443', '[2001:db8:0:a::2]']) t.is(getAddressKey(ip), '2001:db8:0:a::/64', ip);
});
