import '../../src/serve/gateway.js';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { projectRoot } from '../../src/base/paths.js';
import { tuning } from '../../src/base/tuning.js';
import { loadSettings, readSettingsSchema } from '../../src/settings.js';
import { words } from '../support/words.js';

test('the defaults are valid settings, each of the type in the schema', (t) => {
  const settings = Object.entries(loadSettings({})).filter(([name]) => !Object.hasOwn(tuning, name));
  const types = settings.map(([name, value]) => [name, typeof value]);
  const expected = Object.entries(readSettingsSchema().properties).map(([name, { type }]) => [
    name,
    type === 'integer' ? 'number' : type,
  ]);
  t.deepEqual(Object.fromEntries(types), Object.fromEntries(expected));
});

test('a constant of the gateway is no setting, neither in the environment nor in CONFIG_FILE', (t) => {
  t.is(loadSettings({ CHUNK_ROWS_MAX: '7' }).chunkRowsMax, tuning.chunkRowsMax);
  const folder = mkdtempSync(join(tmpdir(), 'settings-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, 'own.json'), '{ "chunkRowsMax": 7 }');
  t.throws(() => loadSettings({ CONFIG_FILE: join(folder, 'own.json') }), { message: /no setting chunkRowsMax/ });
});

test('a number or a boolean has one spelling in the environment', (t) => {
  t.is(loadSettings({ PER_PAGE_MAX: '1000', BASIC_AUTH: 'true' }).perPageMax, 1000);
  for (const text of ['1e3', '+5', ' 5', '0x10', '1_000', '5.0', ''])
    t.throws(() => loadSettings({ PER_PAGE_MAX: text }), { message: /PER_PAGE_MAX must be a whole number from/ }, text);
  for (const text of ['1', 'TRUE', 'yes', 'null', ''])
    t.throws(() => loadSettings({ BASIC_AUTH: text }), { message: /BASIC_AUTH must be one of true, false/ }, text);
});

test('every keyword in the schema of settings is enforced', (t) => {
  const prose = ['type', 'default', 'description', 'x-secret'];
  const enforced = ['minimum', 'maximum', 'minLength', 'maxLength', 'pattern', 'enum'];
  const used = new Set(Object.values(readSettingsSchema().properties).flatMap((each) => Object.keys(each)));
  const unchecked = [...used].filter((keyword) => ![...prose, ...enforced].includes(keyword));
  t.deepEqual(unchecked, []);
  const wrong = {
    PER_PAGE_MAX: ['0', '100000000'],
    REDIS_SENTINEL_NAME: ['', 'x'.repeat(201)],
    TIME_ZONE: ['Europe Amsterdam', 'Foo1'],
    DOCS: ['everywhere'],
  };
  for (const [name, values] of Object.entries(wrong))
    for (const value of values)
      t.throws(() => loadSettings({ [name]: value }), { message: new RegExp(`${name} must`) });
});

test('DEPRECATION and SUNSET have the forms of their headers, and the sunset is not before the deprecation', (t) => {
  const sunset = 'Fri, 01 Jan 2027 00:00:00 GMT';
  t.is(loadSettings({ DEPRECATION: '@1767225600', SUNSET: sunset }).sunset, sunset);
  t.is(loadSettings({ SUNSET: sunset }).sunset, sunset);
  t.notThrows(() => loadSettings({ DEPRECATION: '@1798761600', SUNSET: sunset }), 'at the same moment');
  for (const text of ['1767225600', '@', '@1767225600.5', '@1767225600000', 'true', sunset])
    t.throws(() => loadSettings({ DEPRECATION: text }), { message: /DEPRECATION must not be "/ }, text);
  for (const text of [
    ...['2027-01-01', '@1798761600', 'Sat, 01 Jan 2027 00:00:00 GMT', 'Fri, 1 Jan 2027 00:00:00 GMT'],
    ...['Fri, 01 Jan 2027 00:00:00 UTC', 'Sun, 30 Feb 2027 00:00:00 GMT', 'Friday, 01-Jan-27 00:00:00 GMT'],
    ...['next year', 'Invalid Date'],
  ])
    t.throws(
      () => loadSettings({ SUNSET: text }),
      { message: /\n {2}SUNSET must be an HTTP date such as [^\n]+$/ },
      text,
    );
  t.throws(() => loadSettings({ DEPRECATION: '@1798761601', SUNSET: sunset }), {
    message: /\n {2}SUNSET must not be earlier than DEPRECATION\.$/,
  });
});

test('CORS_ORIGINS takes origins as browsers send them, and names each entry that none sends', (t) => {
  const origins = 'https://app.example.com, http://localhost:3000';
  t.is(loadSettings({ CORS_ORIGINS: origins }).corsOrigins, origins);
  for (const entry of words('* null https://app.example.com/ https://App.example.com app.example.com https://x:443'))
    t.throws(
      () => loadSettings({ CORS_ORIGINS: `https://good.example.com ${entry}` }),
      {
        message: `The settings are not valid:\n  CORS_ORIGINS must list origins such as https://app.example.com, in lower case and without a path; "${entry}" is none.`,
      },
      entry,
    );
});

const urlOf = (rest: string): string => `postgres://gateway_reader:${rest}@127.0.0.1:5432/db`;

test('a connection URL that would not be used as it is meant is refused with the correction, and no part of its password', (t) => {
  for (const password of ['ge#heim', 'ge/heim', '2024#heim', '2024/heim', '2024?heim', 'heim%ff', 'heim,2024'])
    for (const name of ['REPLICA_URLS', 'ADMIN_URL']) {
      const { message } = t.throws(() => loadSettings({ [name]: urlOf(password) }), undefined, password) as Error;
      t.regex(message, /must be a connection URL, .*; write special characters of user and password percent-encoded/);
      t.notRegex(message, /heim|2024/);
    }
  for (const password of ['ge%23heim', '2024%2Fheim', '100%heim', 'ge@heim', 'h%C3%A9'])
    t.notThrows(() => loadSettings({ REPLICA_URLS: urlOf(password) }), password);
  t.notThrows(() => loadSettings({ REPLICA_URLS: 'postgres://h/db?user=reader@tenant&password=x' }));
  for (const [redis, accepted] of [
    ['redis://:ge/heim@h:6379', false],
    ['redis://default:2024#heim@h:6379', false],
    ['redis://default:2024%23heim@h:6379/1', true],
  ] as const)
    if (accepted) t.notThrows(() => loadSettings({ REDIS_URL: redis }));
    else
      t.throws(() => loadSettings({ REDIS_URL: redis }), { message: /REDIS_URL must be a URL, .* percent-encoded, / });
});

test('a misspelt parameter for TLS is refused, which pg would ignore, and a file for TLS that cannot be read', (t) => {
  const faults = {
    'sslmod=verify-full': 'REPLICA_URLS has a parameter sslmod: did you mean sslmode?',
    'ssl_mode=require': 'REPLICA_URLS has a parameter ssl_mode: did you mean sslmode?',
    'sslmode=verify-full&sslRootCert=/ca.crt': 'REPLICA_URLS has a parameter sslRootCert: did you mean sslrootcert?',
    'sslrootcert=/absent/ca.crt': 'REPLICA_URLS names a file in sslrootcert that cannot be read: ENOENT.',
  };
  for (const [parameters, fault] of Object.entries(faults))
    t.throws(() => loadSettings({ REPLICA_URLS: `${urlOf('x')}?${parameters}` }), {
      message: `The settings are not valid:\n  ${fault}`,
    });
  const others = 'sslmode=verify-full&application_name=x&sslcrl=/x&channel_binding=require';
  t.notThrows(() => loadSettings({ REPLICA_URLS: `${urlOf('x')}?${others}&sslrootcert=${projectRoot}/package.json` }));
});

test('values in quotes and with the line end of another system are named, each once', (t) => {
  const env = {
    PORT: "'8080'",
    HOST: '"127.0.0.1"',
    TIME_ZONE: 'UTC\r',
    DATA_KEYS_FILE: '/run/keys\r',
    CONFIG_FILE: '"a.json"',
  };
  const { message } = t.throws(() => loadSettings(env)) as Error;
  t.deepEqual(message.split('\n  ').slice(1).sort(), [
    'CONFIG_FILE is in quotes: leave them out.',
    'DATA_KEYS_FILE ends with a carriage return: give the file that it comes from the line ends of Unix.',
    'HOST is in quotes: leave them out.',
    'PORT is in quotes: leave them out.',
    'TIME_ZONE ends with a carriage return: give the file that it comes from the line ends of Unix.',
  ]);
});

test('CONFIG_FILE is one JSON object in UTF-8, each of its names once; a byte order mark does no harm', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'settings-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'settings.json');
  const load = (content: string | Buffer) => {
    writeFileSync(file, content);
    return loadSettings({ CONFIG_FILE: file });
  };
  t.is(load('\ufeff{"perPageMax": 5000}').perPageMax, 5000);
  const faults: [string | Buffer, string][] = [
    ['null', 'it is no JSON object'],
    ['[1]', 'it is no JSON object'],
    ['{', 'it is not JSON'],
    ['{"perPageMax": 1, "perPageMax": 5000}', 'it has perPageMax twice'],
    [Buffer.from('\ufeff{}', 'utf16le'), 'it is not UTF-8'],
  ];
  for (const [content, fault] of faults)
    t.throws(() => load(content), {
      message: `The settings are not valid:\n  CONFIG_FILE ${file} cannot be read: ${fault}.`,
    });
});

test('a gateway loads the packages of Redis and of traces only when they are configured', (t) => {
  const loaded = Object.keys(createRequire(import.meta.url).cache);
  t.true(loaded.some((file) => file.includes('/node_modules/pg/')));
  const early = loaded.filter((file) => /\/node_modules\/(?:ioredis|@opentelemetry\/(?!api\/))/.test(file));
  t.deepEqual(early, []);
});
