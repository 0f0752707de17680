import { request } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import { urlAs } from '../../demo/cluster/passwords.js';
import { holdingProxy } from '../support/holding-proxy.js';
import { page, records } from '../support/lists.js';
import { eventually, gatewayTest, shared } from '../support/workspace.js';

// A client that waits too long for a page gives it up, asks for it again, and goes on with the next.

const test = gatewayTest();

test.serial('a page that a client gave up moves no page of its walk', async (t) => {
  const { database } = t.context;
  const server = new URL(urlAs(shared.replicas[0] as string, 'gateway_reader', database.name));
  const proxy = await holdingProxy(server);
  t.teardown(() => proxy.close());
  server.port = String(proxy.port);
  const { client, gateway, token, log } = await database.gateway({ replicaUrls: server.href });
  const pageOf = (number: number) => page<{ id: string }>(client, `/klanten?perPage=10&page=${number}`);
  const ids = (await records<{ id: string }>(t.context.client, '/klanten')).map(({ id }) => id);
  await Promise.all(Array.from({ length: 8 }, () => page(client, '/logboeken'))); // opens connections

  let release = (): void => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  const held = new Promise<void>((come) => {
    proxy.before('klanten.rows-all', () => {
      come();
      return released;
    });
  });
  const headers = { authorization: `Bearer ${token}`, 'x-request-id': 'given-up' };
  const givenUp = request(`${gateway.url}/api/v1/klanten?perPage=10&page=1`, { headers });
  givenUp.on('error', () => {});
  givenUp.end();
  await held;
  givenUp.destroy();
  await eventually(t, 'the end of the request', () => log().includes('"requestId":"given-up"'));
  const idsOf = async (number: number): Promise<string[]> => (await pageOf(number)).data.map(({ id }) => id);
  t.deepEqual(await idsOf(1), ids.slice(0, 10));
  release();
  await setTimeout(300);
  t.deepEqual(await idsOf(2), ids.slice(10, 20));
});
