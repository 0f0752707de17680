import type { AddressInfo } from 'node:net';
import test from 'ava';
import Koa from 'koa';
import { newExchange } from '../../src/http/exchange.js';
import { send } from '../../src/http/respond.js';

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
