import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { urlAs } from '../../demo/cluster/passwords.js';
import { projectRoot, readProject } from '../../src/base/paths.js';
import type { Finding } from '../../src/doctor/finding.js';
import { listMisspeltNames, type Settings } from '../../src/settings.js';
import { commandLine, connections, programLine } from '../support/command-line.js';
import { environmentOf } from '../support/environment.js';
import { until } from '../support/patience.js';
import { serveProcess } from '../support/serve-process.js';
import { wallKey } from '../support/walls.js';
import { gatewayTest, shared } from '../support/workspace.js';

// Commands as an operator calls them: wrong lines, settings, what they print.

const test = gatewayTest();

const wrong: readonly (readonly [args: string, message: string, hint: string])[] = [
  ['srve', 'There is no command "srve": did you mean serve?', ''],
  ['frobnicate', 'There is no command "frobnicate".', ''],
  ['help chek', 'There is no command "chek": did you mean check?', ''],
  ['--versoin', 'There is no option "--versoin": did you mean --version?', ''],
  ['serve --prot 1', "Unknown option '--prot': did you mean --port?", ' serve'],
  ['serve --port 70000', '--port must be a whole number from 0 to 65535, not "70000".', ' serve'],
  ['migrate --lst', "Unknown option '--lst': did you mean --list?", ' migrate'],
  [
    'migrate --list --pending',
    'Give one of --list, --pending, --indexes, --uninstall, --repair, --wall-key, --retire-wall-keys.',
    ' migrate',
  ],
  ['tokens lst', 'tokens needs one of: create, list, rotate, revoke, prune: did you mean list?', ' tokens'],
  [
    'tokens prune --expired-before 2026-02-30',
    '--expired-before must be a date such as 2026-03-31, not "2026-02-30".',
    ' tokens',
  ],
  ['tokens revoke wdg_x', 'That is not the id of a token; `tokens list` shows it.', ' tokens'],
];

test('a wrong command line is answered with the fault, the nearest name and a hint, exit code 2', async (t) => {
  for (const [args, message, hint] of wrong) {
    const { stdout, stderr, code } = await commandLine(args.split(' '));
    t.deepEqual({ stdout, code }, { stdout: '', code: 2 }, args);
    t.is(stderr, `${message}\nTry: workspace-data-gateway${hint} --help\n`);
  }
});

test('tokens create names the scopes of the definitions in use, and takes no other', async (t) => {
  const resourcesDir = mkdtempSync(join(tmpdir(), 'definitions-'));
  t.teardown(() => rmSync(resourcesDir, { recursive: true }));
  const { $schema: _, ...definition } = JSON.parse(readProject('config/resources/logboeken.json')) as {
    $schema: string;
  };
  writeFileSync(join(resourcesDir, 'notes.json'), JSON.stringify({ ...definition, name: 'notes' }));
  const create = ['tokens', 'create', '--workspace', 'w', '--owner', 'o', '--name', 'n'];
  for (const [more, message] of [
    [[], 'tokens create needs --scopes, of: read:notes.'],
    [['--scopes', 'read:notes,read:klanten'], 'There is no scope read:klanten. Scopes: read:notes.'],
  ] as const) {
    const { stderr, code } = await commandLine([...create, ...more], { resourcesDir });
    t.deepEqual({ stderr, code }, { stderr: `${message}\nTry: workspace-data-gateway tokens --help\n`, code: 2 });
  }
});

test('help COMMAND, COMMAND --help and the file of the help text are the same', async (t) => {
  const text = readProject('config/help/views.txt');
  t.deepEqual(await commandLine(['help', 'views']), { stdout: text, stderr: '', code: 0 });
  t.is((await programLine(['views', '--help'])).stdout, text);
});

const unreachable = { replicaUrls: 'postgres://reader@127.0.0.1:1/workspace' };

test('unknown names in CONFIG_FILE are named with the nearest setting, and a server that is away is exit code 1', async (t) => {
  const file = join(tmpdir(), `settings-${process.pid}.json`);
  writeFileSync(file, JSON.stringify({ perPageMx: 5, colour: 'red' }));
  const { stderr, code } = await commandLine(['serve'], { configFile: file } as Partial<Settings>);
  t.is(code, 2);
  t.is(
    stderr,
    'The settings are not valid:\n  CONFIG_FILE: there is no setting perPageMx: did you mean perPageMax?\n  CONFIG_FILE: there is no setting colour.\n',
  );
  for (const given of [{ resourcesDir: '/nowhere' }, { codecModule: '/nowhere' }, { dataKeys: '{"k":"x"}' }])
    t.is((await commandLine(['serve'], { ...unreachable, ...given })).code, 2, JSON.stringify(given));
  const away = await commandLine(['tokens', 'list'], { adminUrl: 'postgres://admin@127.0.0.1:1/workspace' });
  t.is(away.code, 1);
  t.is(away.stderr, 'The server at 127.0.0.1:1 cannot be reached: nothing listens there (ECONNREFUSED).\n');
});

test('a listener that cannot have its address says why, with the code of the system', async (t) => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => server.close());
  const { port } = server.address() as AddressInfo;
  const settings = {
    replicaUrls: 'postgres://gateway_reader@127.0.0.1:1/app',
    wallKey,
    host: '127.0.0.1',
    port: 0,
    opsPort: 0,
  };
  for (const [other, sentence] of [
    [
      { port },
      `Cannot listen on 127.0.0.1:${port}: another process, or the other listener, has the port (EADDRINUSE).`,
    ],
    [{ opsHost: '192.0.2.1' }, 'Cannot listen on 192.0.2.1:0: this machine does not have the address (EADDRNOTAVAIL).'],
  ] as const) {
    const { code, stderr } = await commandLine(['serve'], { ...settings, ...other });
    t.is(code, 1);
    t.is(stderr, `${sentence}\n`);
  }
});

test('SIGHUP without workers is logged, and serve goes on', async (t) => {
  const settings = {
    replicaUrls: 'postgres://gateway_reader@127.0.0.1:1/app',
    wallKey,
    host: '127.0.0.1',
    port: 0,
    opsPort: 0,
  };
  const { child, stop, log, opsUrl } = await serveProcess(settings);
  t.teardown(() => stop('SIGKILL'));
  child.kill('SIGHUP');
  t.true(await until(() => /WEB_CONCURRENCY.*reload_refused/.test(log()), 10_000, 20));
  t.is((await fetch(`${opsUrl}/livez`)).status, 200);
  t.is(await stop(), 0);
});

test('an error of PostgreSQL comes with the next step: a replica as ADMIN_URL, a wrong password, no such database', async (t) => {
  const [replica] = shared.replicas as [string];
  const wrongPassword = Object.assign(new URL(shared.primary), { password: 'geheim' }).href;
  for (const [adminUrl, nextStep] of [
    [replica, /25006\)[.] It is a replica, or its transactions are read-only: give the URL of the primary[.]\n$/],
    [wrongPassword, /28P01\)[.] Look at user and password of its URL, and at pg_hba[.]conf[.]\n$/],
    [urlAs(shared.primary, 'postgres', 'nowhere'), /3D000\)[.] Look at the name of the database in its URL[.]\n$/],
  ] as const) {
    const { code, stderr } = await commandLine(['migrate'], { adminUrl });
    t.is(code, 1);
    t.regex(stderr, nextStep);
    t.notRegex(stderr, /geheim/);
  }
});

const { engines } = JSON.parse(readProject('package.json')) as { engines: { node: string } };
const [oldest = ''] = /\d+/.exec(engines.node) ?? [];
const startsTitle = `the program starts on Node ${oldest}, the oldest that package.json promises`;
const isOldest = process.versions.node.split('.')[0] === oldest;
(isOldest ? test : test.skip)(startsTitle + (isOldest ? '' : ` (this is Node ${process.versions.node})`), async (t) => {
  t.regex((await commandLine(['--version'])).stdout, /^\d+\.\d+\.\d+\n$/);
  t.is((await commandLine(['serve', '--print-config'])).code, 0);
});

test('README, docs/operate/deployment.md and image name the same versions of Node as package.json', (t) => {
  for (const page of ['README.md', 'docs/operate/deployment.md'])
    t.regex(readProject(page), /Node(\.js)? 26 LTS/, page);
  t.regex(engines.node, /\|\| >=26/);
  t.true(readProject('README.md').includes(`the oldest is ${oldest}`));
  t.regex(readProject('Dockerfile'), /^ARG NODE_IMAGE=node:26-/m);
});

// The settings as an operator gives them: in the environment of a process.

test('no command takes the files of the reference app because a setting is missing', async (t) => {
  const settings = environmentOf(connections(t.context.database));
  const withoutFiles = (...args: string[]): Promise<string> =>
    promisify(execFile)(process.execPath, [join(projectRoot, 'dist/src/main.js'), ...args], {
      env: { PATH: process.env.PATH, ...settings, RESOURCES_DIR: '' },
    }).then(
      () => 'done',
      ({ stderr }: { stderr: string }) => stderr,
    );
  for (const args of ['serve', 'export --workspace x --out x', 'migrate --views x'])
    t.regex(await withoutFiles(...args.split(' ')), /^RESOURCES_DIR is not set: the folder of the definitions/, args);
  for (const args of ['migrate --pending', 'views --create'])
    t.regex(await withoutFiles(...args.split(' ')), /^--views DIR is missing: the folder of the views/, args);
});

test('every unusable setting is named at once, a secret without its value, and the exit code is 2', async (t) => {
  const settings = {
    replicaUrls: 'postgres://reader@127.0.0.1:1/a http://secret@127.0.0.1:1/b',
    primaryUrls: 'secret',
    adminUrl: 'mysql://secret@127.0.0.1/a',
    redisUrl: 'secret:6379',
    dataKeys: '{"k1": "secret"}',
    port: 99_999,
    logLevel: 'loud' as 'info',
    basicAuth: 'ja' as unknown as boolean,
    publicUrl: 'data.example.com',
    sunset: '2027-01-01',
  };
  for (const command of ['serve', 'check', 'migrate']) {
    const { stdout, stderr, code } = await commandLine([command], settings);
    t.is(code, 2, command);
    t.is(stdout, '');
    t.is(
      stderr,
      `The settings are not valid:
  PORT must be a whole number from 0 to 65535, not 99999.
  PUBLIC_URL must not be "data.example.com". The absolute URL at which clients reach the gateway, without a trailing slash. Links begin with it. If it is empty, they are made from the Host header.
  BASIC_AUTH must be one of true, false, not "ja".
  LOG_LEVEL must be one of trace, debug, info, warn, error, fatal, silent, not "loud".
  REPLICA_URLS, entry 2, must be a connection URL, postgres://….
  PRIMARY_URLS must be a connection URL, postgres://….
  ADMIN_URL must be a connection URL, postgres://….
  REDIS_URL must be a URL, redis://… or rediss://….
  DATA_KEYS: The keyring is not usable: entry 1 ("k1"): the key must be the base64 of exactly 32 bytes.
  SUNSET must be an HTTP date such as Fri, 01 Jan 2027 00:00:00 GMT.
`,
    );
  }
});

test('serve warns of misspelt environment names, and check reports them', async (t) => {
  const settings = { replicaUrl: 'x', ratelimitPerMinute: '5' } as object;
  const { stderr, code } = await commandLine(['serve', '--print-config'], settings);
  const sentences = [
    'Unknown setting REPLICA_URL ignored; did you mean REPLICA_URLS?',
    'Unknown setting RATELIMIT_PER_MINUTE ignored; did you mean RATE_LIMIT_PER_MINUTE?',
  ];
  t.is(code, 0);
  t.is(stderr, sentences.map((sentence) => `Warning: ${sentence}\n`).join(''));
  const refused = await commandLine(['serve'], { ...settings, port: 99_999 });
  t.is(refused.code, 2);
  t.regex(
    refused.stderr,
    /^Warning: Unknown setting REPLICA_URL ignored[\s\S]*\nThe settings are not valid:\n {2}PORT must be/,
  );
  const checked = await commandLine(['check', '--json'], settings);
  t.is(checked.code, 1);
  const { findings } = JSON.parse(checked.stdout) as { findings: Finding[] };
  const warnings = findings
    .filter(({ code, level }) => code === 'environment' && level === 'warning')
    .map(({ detail }) => detail);
  t.deepEqual(warnings, sentences);
});

test('names of other programs are no misspelt settings', (t) => {
  const others =
    'HOME HOSTNAME PATH LANG TZ PGHOST NODE_ENV CLIENT_ID APP_HOST REDIS_HOST PRIMARY_SERVICE_HOST REDIS_PORT CONFIG_FILE DATA_KEYS_FILE';
  t.deepEqual(listMisspeltNames(Object.fromEntries(others.split(' ').map((name) => [name, 'x']))), []);
});

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

test('control characters in names are escaped when tokens are listed, also as JSON', async (t) => {
  const list = (...args: string[]) => commandLine(['tokens', 'list', ...args], connections(t.context.database));
  const { stdout, code } = await list();
  t.is(code, 0);
  t.true(stdout.includes(escaped));
  t.notRegex(stdout, controls);
  t.is(stdout.trimEnd().split('\n').length, 2, 'a heading and one token');
  const json = (await list('--json')).stdout;
  t.notRegex(json, controls);
  t.is((JSON.parse(json) as { name: string }[])[0]?.name, hostile);
});

test('control characters in errors are escaped, whether they come from PostgreSQL, the command line or a setting', async (t) => {
  const settings = connections(t.context.database);
  for (const { stdout, stderr, code } of [
    await commandLine(['tokens', 'list', '--workspace', `no ${hostile}`], settings),
    await commandLine(['tokens', 'list'], { ...settings, adminUrl: 'postgres://127.0.0.1:1/\u001b[2J' }),
    await commandLine([hostile]),
    await commandLine(['serve'], { logLevel: hostile as 'info' }),
    await commandLine(['check'], { replicaUrls: `postgres://gateway_reader@\u001b[2J` }),
  ]) {
    t.not(code, 0);
    t.not(stdout + stderr, '');
    t.notRegex(stdout + stderr, controls);
  }
});
