import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { newToken } from '../../src/http/token-format.js';
import { projectRoot } from '../../src/paths.js';

// Addresses and token files that an operator of `pull` gives by mistake; no gateway is needed to refuse them.

const folder = mkdtempSync(join(tmpdir(), 'pull-mistakes-'));
const tokenFile = join(folder, 'token');
const token = newToken();
test.before(() => writeFileSync(tokenFile, token));
test.after.always(() => rmSync(folder, { recursive: true }));

/** Runs `pull`; ends it with SIGTERM once it waits for the gateway. */
function pull(
  base: string,
  file = tokenFile,
  to = join(folder, 'copy'),
): Promise<{ code: number | null; stderr: string }> {
  const args = ['--base', base, '--token-file', file, '--to', to];
  const child = spawn(process.execPath, [join(projectRoot, 'dist/pull/main.js'), ...args], {
    env: { PATH: process.env.PATH },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let stderr = '';
  child.stderr.on('data', (bytes: Buffer) => {
    stderr += String(bytes);
    if (stderr.startsWith('Waiting ')) child.kill();
  });
  return new Promise((resolve) => child.once('close', (code) => resolve({ code, stderr })));
}

const address = 'http://127.0.0.1:9';

test.serial('an address that fetch would refuse is refused without the secret in it', async (t) => {
  for (const [message, base, to] of [
    [/--base takes no user and no password: the token in --token-file is the login/, 'http://etl:geheim@127.0.0.1:9'],
    [/--base is the address of a gateway/, `${address}?key=geheim`],
    [/--to must be a connection URL, .* percent-encoded, /, address, 'postgres://etl:2024#geheim@h:1/copy'],
  ] as const) {
    const { code, stderr } = await pull(base, tokenFile, to);
    t.is(code, 2, stderr);
    t.regex(stderr, message);
    t.notRegex(stderr, /geheim/);
  }
});

test.serial('a file with more than a token is refused, and no part of it is shown', async (t) => {
  const file = join(folder, 'no-token');
  for (const text of [`${token}\n${newToken()}`, `Bearer ${token}`, `${token.slice(0, -1)}é`, '']) {
    writeFileSync(file, text);
    t.deepEqual(await pull(address, file), {
      code: 1,
      stderr: `The token file ${file} must hold one whole token, wdg_…, and nothing else.\n`,
    });
  }
  writeFileSync(file, Buffer.from(`\ufeff${token}`, 'utf16le'));
  t.is((await pull(address, file)).stderr, `The token file ${file} cannot be read: it is not UTF-8.\n`);
});

test.serial('pull that is pointed at another server says what that answers', async (t) => {
  const server = createServer((_, reply) => void reply.writeHead(200, { 'content-type': 'text/html' }).end('<html>'));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => server.close());
  t.deepEqual(await pull(`http://127.0.0.1:${(server.address() as AddressInfo).port}`), {
    code: 0,
    stderr: 'Waiting 4 s for the gateway: it answers with text/html, as a gateway does not.\n',
  });
});

test.serial('pull that finds nothing to copy says so, and does not end as if it had a copy', async (t) => {
  for (const body of ['{}', '{"paths":{"/klanten":{}}}']) {
    const server = createServer(
      (_, reply) => void reply.writeHead(200, { 'content-type': 'application/json' }).end(body),
    );
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    t.teardown(() => server.close());
    const { code, stderr } = await pull(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    t.is(code, 1);
    t.regex(stderr, /^The server at --base describes no resource that can be copied: .*"sync" in a definition.*\n$/);
  }
});
