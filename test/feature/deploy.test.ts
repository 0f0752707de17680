import { execFile, spawn, spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { IncomingHttpHeaders } from 'node:http';
import { request as secureRequest } from 'node:https';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect as connectSecure } from 'node:tls';
import { promisify } from 'node:util';
import type { ExecutionContext } from 'ava';
import { projectRoot } from '../../src/base/paths.js';
import { loadSettings } from '../../src/settings.js';
import type { Page } from '../support/lists.js';
import { eventually, gatewayTest, type TestContext } from '../support/workspace.js';

// The files in deploy/ against the programs that read them. A program that is not installed is a skip that names it.

const test = gatewayTest({ trustedProxyHops: 1, publicUrl: 'https://data.example.com' });
const folder = mkdtempSync(join(tmpdir(), 'deploy-'));
chmodSync(folder, 0o755);
const shipped = (path: string): string => readFileSync(join(projectRoot, 'deploy', path), 'utf8');
const run = promisify(execFile);
const has = (program: string): boolean => spawnSync(program, ['--version']).error === undefined;

/** Skips a test without its program, and names the Debian package. */
function testWith(
  program: string,
  packageName: string,
  title: string,
  work: (t: ExecutionContext<TestContext>) => Promise<void>,
) {
  if (has(program)) test(title, work);
  else test.skip(`${title} (skipped: no ${program}; apt-get install ${packageName})`, work);
}

const stops: (() => Promise<void>)[] = [];
test.after.always(async () => {
  for (const stop of stops) await stop();
  rmSync(folder, { recursive: true });
});

function start(program: string, args: string[]): { output: () => string } {
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (bytes) => (output += String(bytes)));
  const exited = once(child, 'exit');
  stops.push(async () => {
    child.kill('SIGTERM');
    await exited;
  });
  return { output: () => output };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  return port;
}

test('the secrets of compose.yaml are settings that the gateway takes', async (t) => {
  mkdirSync(join(folder, 'compose'));
  cpSync(join(projectRoot, 'deploy/compose/make-secrets.sh'), join(folder, 'compose/make-secrets.sh'));
  await run('sh', [join(folder, 'compose/make-secrets.sh')]);
  const secret = (name: string): string => join(folder, 'compose/secrets', name);
  const settings = loadSettings({
    REPLICA_URLS_FILE: secret('replica_urls'),
    PRIMARY_URLS_FILE: secret('primary_urls'),
    ADMIN_URL_FILE: secret('admin_url'),
    WALL_KEY_FILE: secret('wall_key'),
    DATA_KEYS_FILE: secret('data_keys'),
  });
  t.regex(
    settings.replicaUrls,
    /^postgres:\/\/gateway_reader:(\w{48})@standby\/workspace postgres:\/\/gateway_reader:\1@primary\/workspace$/,
  );
  const before = readFileSync(secret('data_keys'), 'utf8');
  await run('sh', [join(folder, 'compose/make-secrets.sh')]);
  t.is(readFileSync(secret('data_keys'), 'utf8'), before, 'a second run keeps them');
});

testWith('promtool', 'prometheus', 'the alerts fire when they must, and only then', async (t) => {
  const cwd = join(projectRoot, 'deploy/prometheus');
  t.regex((await run('promtool', ['check', 'config', 'scrape.yml'], { cwd })).stdout, /SUCCESS: \d+ rules found/);
  t.regex((await run('promtool', ['test', 'rules', 'alerts.test.yml'], { cwd })).stdout, /SUCCESS/);
});

testWith(
  'systemd-analyze',
  'systemd',
  'systemd takes the unit, and rates its exposure at 1.5 of 10 at most',
  async (t) => {
    const text = shipped('systemd/workspace-data-gateway.service');
    const unit = join(folder, 'workspace-data-gateway.service');
    writeFileSync(unit, text.replace('/usr/bin/node', process.execPath));
    t.is((await run('systemd-analyze', ['verify', unit])).stderr, '');
    const { stdout } = await run('systemd-analyze', ['security', '--offline=true', '--threshold=15', unit]);
    t.regex(stdout, /Overall exposure level/);
  },
);

/** Starts a gateway that dies with every request that it gets; resolves with its port, and adds each method to `seen`. */
async function dyingServer(seen: string[]): Promise<number> {
  const dying = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', (bytes) => {
      seen.push(String(bytes).split(' ')[0] as string);
      socket.destroy();
    });
  }).listen(0, '127.0.0.1');
  await once(dying, 'listening');
  stops.push(async () => void dying.close());
  return (dying.address() as AddressInfo).port;
}

type Send = (method: string, path: string, headers?: Record<string, string>, body?: string) => Promise<Answer>;

/** Errors of nginx itself have the form of the API. */
async function errorsOfNginx(t: ExecutionContext, port: number, send: Send): Promise<void> {
  t.like(await send('POST', '/installaties', {}, 'x'.repeat(2_100_000)), { status: 413, json: { status: 413 } });
  const long = 'x'.repeat(40_000);
  t.like(await send('GET', `/klanten?search=${long}`), { status: 414, json: { code: 'uri_too_long' } });
  t.like(await send('GET', '/klanten', { 'X-Long': long }), { status: 431, json: { code: 'headers_too_large' } });
  t.like(await send('GET', '/klanten', { Host: 'a b' }), { status: 400, json: { code: 'invalid_request' } });
  for (const line of malformedLines) {
    const answer = await rawAnswer(port, `${line}\r\nHost: data.example.com\r\n\r\n`);
    t.regex(answer, /^HTTP\/1\.1 400 [\s\S]*"code":"invalid_request"/, line);
    t.regex(answer, /^Content-Type: application\/problem\+json\r$/m, line);
    t.notRegex(answer, /nginx\/|<html>/, line);
  }
  t.regex(
    await rawAnswer(port, 'TRACE / HTTP/1.1\r\nHost: data.example.com\r\n\r\n'),
    /^HTTP\/1\.1 405 [\s\S]*method_not_allowed/,
  );
  t.like(await send('GET', '/../../problem/malformed'), { status: 404, json: { code: 'not_found' } });
  const plain = await fetch(`http://127.0.0.1:${port}/api/v1/klanten`);
  t.is(((await plain.json()) as { code: string }).code, 'invalid_request');
}

/** While four connections wait for their bodies, others get 429. */
async function refusesCrowds(t: ExecutionContext, port: number, send: Send): Promise<void> {
  const open = { host: '127.0.0.1', port, rejectUnauthorized: false, agent: false, method: 'POST' };
  const waiting = [1, 2, 3, 4].map(() => {
    const request = secureRequest({ ...open, headers: { 'Content-Length': '9' } });
    request.on('error', () => undefined).flushHeaders(); // the body never comes
    return request;
  });
  await eventually(t, 'the refusal', async () => (await send('GET', '/klanten?perPage=1')).status === 429);
  const crowded = await send('GET', '/klanten?perPage=1');
  t.like(crowded, { status: 429, json: { status: 429, code: 'rate_limited' } });
  t.is(crowded.headers['retry-after'], '1');
  t.is(crowded.headers['strict-transport-security'], 'max-age=31536000');
  for (const request of waiting) request.destroy();
  await eventually(t, 'room', async () => (await send('GET', '/klanten?perPage=1')).status === 200);
}

testWith(
  'nginx',
  'nginx',
  'behind nginx reads and writes work, and only a GET is sent to a second gateway',
  async (t) => {
    const { gateway, token, database } = t.context;
    const seen: string[] = [];
    const dying = await dyingServer(seen);
    const { port, output } = await nginx([`127.0.0.1:${dying} weight=50`, new URL(gateway.url).host], 4);
    const send = (method: string, path: string, headers: Record<string, string> = {}, body = ''): Promise<Answer> =>
      secureAnswer(
        port,
        { method, path: `/api/v1${path}`, headers: { Authorization: `Bearer ${token}`, ...headers } },
        body,
      );
    await eventually(t, `nginx: ${output()}`, async () => (await send('GET', '').catch(() => null))?.status === 200);

    for (let i = 0; i < 5; i++) {
      const list = await send('GET', '/installaties?perPage=2');
      t.is(list.status, 200);
      t.regex(String(list.json.pagination?.next), /^https:\/\/data\.example\.com\/api\/v1\/installaties\?/);
      t.is(list.headers['strict-transport-security'], 'max-age=31536000');
    }
    t.true(seen.filter((method) => method === 'GET').length > 0, 'the dying gateway was asked first');
    const ids = Array.from({ length: 100 }, (_, i) => `00000000-0000-4000-8000-${String(i).padStart(12, '0')}`);
    const named = await send('GET', `/installaties?ids=${ids}`);
    t.is(named.status, 200, 'nginx takes a Link header as long as the URL');

    await errorsOfNginx(t, port, send);
    await refusesCrowds(t, port, send);

    const id = String(
      (
        await database.primary.query('select id from app.installaties where workspace_id = $1 limit 1', [
          database.workspaces[0]?.id,
        ])
      ).rows[0].id,
    );
    const statuses: number[] = [];
    for (let i = 0; i < 40 && !(statuses.includes(200) && statuses.includes(503)); i++) {
      const before = seen.filter((method) => method === 'PATCH').length;
      const etag = String((await send('GET', `/installaties/${id}`)).headers.etag);
      t.regex(etag, /^"/, 'nginx leaves the ETag strong');
      const headers = { 'If-Match': etag, 'Idempotency-Key': `${i}`, 'Content-Type': 'application/json' };
      const answer = await send('PATCH', `/installaties/${id}`, headers, JSON.stringify({ locatie: `Kelder ${i}` }));
      statuses.push(answer.status);
      if (seen.filter((method) => method === 'PATCH').length === before) continue;
      t.is(answer.status, 503, 'a PATCH that a gateway got is not sent to another');
      t.is(answer.headers['content-type'], 'application/problem+json');
      t.is(answer.headers['retry-after'], '2');
      t.is(answer.json.code, 'gateway_unavailable');
    }
    t.true(statuses.includes(200) && statuses.includes(503), statuses.join(' '));
  },
);

testWith('nginx', 'nginx', 'behind nginx no read fails while one gateway after the other restarts', async (t) => {
  const { database, token } = t.context;
  const ports = [await freePort(), await freePort()];
  const startOn = async (port: number) => (await database.gateway({ port, trustedProxyHops: 1 })).gateway;
  const running = [await startOn(ports[0] as number), await startOn(ports[1] as number)];
  const { port, output } = await nginx(ports.map((each) => `127.0.0.1:${each}`));
  const statuses: number[] = [];
  const read = async (): Promise<void> => {
    const headers = { Authorization: `Bearer ${token}` };
    const { status } = await secureAnswer(port, { path: '/api/v1/klanten?perPage=1', headers }, '');
    statuses.push(status);
  };
  await eventually(
    t,
    `nginx: ${output()}`,
    async () =>
      await read().then(
        () => true,
        () => false,
      ),
  );
  let isOver = false;
  const clients = [1, 2, 3, 4].map(async () => {
    while (!isOver) await read();
  });
  const moreAnswers = async (): Promise<void> => {
    const enough = statuses.length + 40;
    while (statuses.length < enough) await new Promise((resolve) => setTimeout(resolve, 10));
  };
  for (const [i, gateway] of running.entries()) {
    await moreAnswers();
    await gateway.stop();
    await moreAnswers();
    await startOn(ports[i] as number);
  }
  await moreAnswers();
  isOver = true;
  await Promise.all(clients);
  t.deepEqual([...new Set(statuses)], [200]);
});

async function nginx(
  servers: readonly string[],
  connectionsMax = 200,
): Promise<{ port: number; output: () => string }> {
  const port = await freePort();
  const own = mkdtempSync(join(folder, 'nginx-'));
  chmodSync(own, 0o755);
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', join(own, 'privkey.pem')];
  await run('openssl', ['req', '-x509', ...key, '-subj', '/CN=data.example.com', '-out', join(own, 'fullchain.pem')]);
  const site = shipped('nginx/gateway.conf')
    .replaceAll('/etc/nginx/tls/', `${own}/`)
    .replace('gateway1.internal:8080', servers[0] as string)
    .replace('gateway2.internal:8080', servers[1] as string)
    .replace('limit_conn clients 200', `limit_conn clients ${connectionsMax}`)
    .replace('listen 443 ssl', `listen 127.0.0.1:${port} ssl`);
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${own}/${name};`,
  );
  writeFileSync(
    join(own, 'nginx.conf'),
    `daemon off; pid ${own}/nginx.pid; error_log stderr; events {} http { access_log off; ${temporary.join(' ')}\n${site}\n}`,
  );
  return { port, ...start('nginx', ['-c', join(own, 'nginx.conf')]) };
}

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly json: {
    readonly status?: number;
    readonly code?: string;
    readonly pagination?: { readonly next: string | null };
  };
}

const malformedLines = [
  'CONNECT data.example.com:443 HTTP/1.1',
  'OPTIONS * HTTP/1.1',
  'GET * HTTP/1.1',
  'GET /api/v1/%00 HTTP/1.1',
  'GET /api/v1/%zz HTTP/1.1',
  'GET \\api HTTP/1.1',
  'GET /../.. HTTP/1.1',
  'GET /a b HTTP/1.1',
  'GET  HTTP/1.1',
  'get / HTTP/1.1',
  'GET / HTTP/9.9',
  'GET / FOO',
  '\u0000\u0001',
  'PRI * HTTP/2.0',
];

async function rawAnswer(port: number, bytes: string): Promise<string> {
  const socket = connectSecure({ host: '127.0.0.1', port, rejectUnauthorized: false });
  socket.on('error', () => undefined);
  socket.write(bytes, 'latin1');
  let text = '';
  for await (const part of socket) {
    text += String(part);
    if (text.includes('}')) break;
  }
  return text;
}

function secureAnswer(port: number, options: object, body: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const request = secureRequest(
      { host: '127.0.0.1', port, rejectUnauthorized: false, agent: false, ...options },
      async (response) => {
        let text = '';
        for await (const bytes of response) text += String(bytes);
        resolve({ status: response.statusCode ?? 0, headers: response.headers, json: JSON.parse(text) });
      },
    );
    request.on('error', reject);
    request.end(body);
  });
}

testWith(
  'pgbouncer',
  'pgbouncer',
  'through PgBouncer reads and writes work, and no workspace sees another',
  async (t) => {
    const { database } = t.context;
    const port = await freePort();
    const [replica, primary] = [new URL(database.settings.replicaUrls), new URL(database.settings.primaryUrls)];
    const { rows } = await database.primary.query<{ rolname: string; rolpassword: string }>(
      `select rolname, rolpassword from pg_authid where rolname in ('gateway_reader', 'gateway_writer')`,
    );
    const userlist = join(folder, 'userlist.txt');
    writeFileSync(userlist, rows.map(({ rolname, rolpassword }) => `"${rolname}" "${rolpassword}"\n`).join(''));
    const server = ({ port: to, pathname }: URL): string => `host=127.0.0.1 port=${to} dbname=${pathname.slice(1)}`;
    const ini = join(folder, 'pgbouncer.ini');
    writeFileSync(
      ini,
      shipped('pgbouncer/pgbouncer.ini')
        .replace(/^(workspace_replica\d =).*$/gm, `$1 ${server(replica)}`)
        .replace(/^(workspace_primary =).*$/m, `$1 ${server(primary)}`)
        .replace('listen_port = 6432', `listen_port = ${port}\nunix_socket_dir =`)
        .replace('/etc/pgbouncer/userlist.txt', userlist),
    );
    const log = start('pgbouncer', [...(process.getuid?.() === 0 ? ['-u', 'daemon'] : []), ini]);
    const pooled = (url: URL, name: string): string =>
      Object.assign(new URL(url), { port: String(port), pathname: `/${name}` }).href;
    await eventually(t, `pgbouncer: ${log.output()}`, async () => log.output().includes('process up'));
    const { client } = await database.gateway({
      replicaUrls: `${pooled(replica, 'workspace_replica1')} ${pooled(replica, 'workspace_replica2')}`,
      primaryUrls: pooled(primary, 'workspace_primary'),
      namedStatements: false,
    });
    const tokens = [await database.token(), await database.token({ workspace: 1 })];
    const idsOf = async (token: string | undefined): Promise<string[]> => {
      const list = await client.get('/klanten?perPage=50', { token: token as string });
      return list.json<Page>().data.map((row) => String(row.id));
    };
    // Side by side, so that the workspaces share the pooler's connections.
    const seen = await Promise.all(Array.from({ length: 40 }, (_, i) => idsOf(tokens[i % 2])));
    const [first, second] = [new Set(seen[0]), new Set(seen[1])];
    t.true(first.size > 10 && second.size > 10 && [...first].every((id) => !second.has(id)));
    for (const [i, ids] of seen.entries()) t.deepEqual(new Set(ids), i % 2 === 0 ? first : second);
    t.is((await client.get('/werkbonnen?perPage=10000&total=true')).status, 200, 'chunks of a large page');
    const key = randomUUID();
    const write = () =>
      client.request('POST', '/installaties', {
        headers: { 'Idempotency-Key': key },
        body: { customerId: seen[0]?.[0], naam: 'Koelcel' },
      });
    const created = await write();
    t.is(created.status, 201, created.text);
    t.is((await write()).headers['idempotent-replayed'], 'true');
    t.is((await client.get(created.headers.location?.replace(/^.*\/api\/v1/, '') as string)).status, 200);
  },
);
