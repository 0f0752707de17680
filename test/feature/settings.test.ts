import test from 'ava';
import type { Finding } from '../../src/check/finding.js';
import { misspeltNames } from '../../src/settings.js';
import { programLine } from '../support/command-line.js';

// The settings as an operator gives them: in the environment of a process.

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
    const { stdout, stderr, code } = await programLine([command], settings);
    t.is(code, 2, command);
    t.is(stdout, '');
    t.is(
      stderr,
      `The settings are not valid:
  PORT must be a whole number from 0 to 65535, not 99999.
  PUBLIC_URL must not be "data.example.com". Absolute URL at which clients reach the gateway, without a trailing slash; for links. Empty: from the Host header.
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
  const { stderr, code } = await programLine(['serve', '--print-config'], settings);
  const sentences = [
    'Unknown setting REPLICA_URL ignored; did you mean REPLICA_URLS?',
    'Unknown setting RATELIMIT_PER_MINUTE ignored; did you mean RATE_LIMIT_PER_MINUTE?',
  ];
  t.is(code, 0);
  t.is(stderr, sentences.map((sentence) => `Warning: ${sentence}\n`).join(''));
  const refused = await programLine(['serve'], { ...settings, port: 99_999 });
  t.is(refused.code, 2);
  t.regex(
    refused.stderr,
    /^Warning: Unknown setting REPLICA_URL ignored[\s\S]*\nThe settings are not valid:\n {2}PORT must be/,
  );
  const checked = await programLine(['check', '--json'], settings);
  t.is(checked.code, 1);
  const { findings } = JSON.parse(checked.stdout) as { findings: Finding[] };
  t.deepEqual(
    findings.filter(({ code, level }) => code === 'environment' && level === 'warning').map(({ detail }) => detail),
    sentences,
  );
});

test('names of other programs are no misspelt settings', (t) => {
  const others =
    'HOME HOSTNAME PATH LANG TZ PGHOST NODE_ENV CLIENT_ID APP_HOST REDIS_HOST PRIMARY_SERVICE_HOST REDIS_PORT CONFIG_FILE DATA_KEYS_FILE';
  t.deepEqual(misspeltNames(Object.fromEntries(others.split(' ').map((name) => [name, 'x']))), []);
});
