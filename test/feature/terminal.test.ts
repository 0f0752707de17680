import { connections, programLine } from '../support/command-line.js';
import { gatewayTest } from '../support/workspace.js';

const test = gatewayTest();
/** Clears the screen (ESC), sets the title (C1), turns text round (bidi), and begins a line of its own. */
const hostile = 'A\u001b[2J\u009d0;title\u0007\u202eB\u2028\nactive  00000000-0000-4000-8000-000000000000';
const escaped = String.raw`A\u001b[2J\u009d0;title\u0007\u202eB\u2028\u000aactive  00000000-0000-4000-8000-000000000000`;
// biome-ignore lint/suspicious/noControlCharactersInRegex: the subject of the test
const controls = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/;

test.before(async (t) => {
  const { primary, workspaces } = t.context.database;
  await primary.query('update app.workspaces set naam = $1 where id = $2', [hostile, workspaces[1]?.id]);
  await primary.query('update app.api_tokens set naam = $1', [hostile]);
});

test('control characters in names are escaped when tokens are listed', async (t) => {
  const { stdout, code } = await programLine(['tokens', 'list'], connections(t.context.database));
  t.is(code, 0);
  t.true(stdout.includes(escaped));
  t.notRegex(stdout, controls);
  t.is(stdout.trimEnd().split('\n').length, 2, 'a heading and one token');
});

test('JSON holds the same names without control characters', async (t) => {
  const { stdout } = await programLine(['tokens', 'list', '--json'], connections(t.context.database));
  t.notRegex(stdout, controls);
  t.deepEqual(
    (JSON.parse(stdout) as { name: string }[]).map(({ name }) => name),
    [hostile],
  );
});

test('control characters in errors are escaped, whether they come from PostgreSQL, the command line or a setting', async (t) => {
  const settings = connections(t.context.database);
  for (const { stdout, stderr, code } of [
    await programLine(['tokens', 'list', '--workspace', `no ${hostile}`], settings),
    await programLine(['tokens', 'list'], { ...settings, adminUrl: 'postgres://127.0.0.1:1/\u001b[2J' }),
    await programLine([hostile]),
    await programLine(['serve'], { logLevel: hostile as 'info' }),
    await programLine(['check'], { replicaUrls: `postgres://gateway_reader@\u001b[2J` }),
  ]) {
    t.not(code, 0);
    t.not(stdout + stderr, '');
    t.notRegex(stdout + stderr, controls);
  }
});
