import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, connect } from 'node:net';
import test from 'ava';
import Koa from 'koa';
import type { Event } from '../../src/events.js';
import { encodingsOf } from '../../src/http/encodings.js';
import { newExchange } from '../../src/http/exchange.js';
import { respond, send } from '../../src/http/respond.js';
import { ChunkMemory } from '../../src/read/chunk-memory.js';

test('an error response has each header once, also when Node.js refused the head of the response before it', async (t) => {
  const koa = new Koa();
  koa.use((ctx) => {
    ctx.respond = false;
    ctx.state.exchange = newExchange(ctx.req, ['API-Version', '1']);
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
        ctx.state.exchange = newExchange(ctx.req, []);
        const pieces = async function* (): AsyncGenerator<Buffer> {
          const failure = Object.assign(new Error(`write ${code}`), { code });
          for (let i = 0; i < 20; i++) {
            if (i === 10)
              ctx.req.socket._write = ctx.req.socket._writev = (_: unknown, ...rest: unknown[]) =>
                (rest.at(-1) as (error: Error) => void)(failure);
            yield randomBytes(100_000);
          }
        };
        await respond(ctx, { status: 200, headers: {}, body: pieces(), databaseMs: 0 }, true, {
          observe: (event) => events.push(event),
          pageTimeMaxMs: 60_000,
          encodings: encodingsOf('gzip'),
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
      t.deepEqual(
        events.map(({ type }) => type),
        code === 'EIO' ? ['page_broken'] : [],
      );
    });
