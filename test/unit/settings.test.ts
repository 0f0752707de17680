import test from 'ava';
import { loadSettings, settingsSchema } from '../../src/settings.js';

test('the defaults are valid settings, each of the type in the schema', (t) => {
  const types = Object.entries(loadSettings({})).map(([name, value]) => [name, typeof value]);
  const expected = Object.entries(settingsSchema().properties).map(([name, { type }]) => [
    name,
    type === 'integer' ? 'number' : type,
  ]);
  t.deepEqual(Object.fromEntries(types), Object.fromEntries(expected));
});

test('a number or a boolean has one spelling in the environment', (t) => {
  t.is(loadSettings({ PER_PAGE_MAX: '1000', BASIC_AUTH: 'true' }).perPageMax, 1000);
  for (const text of ['1e3', '+5', ' 5', '0x10', '1_000', '5.0', ''])
    t.throws(() => loadSettings({ PER_PAGE_MAX: text }), { message: /PER_PAGE_MAX must be a whole number from/ }, text);
  for (const text of ['1', 'TRUE', 'yes', 'null', ''])
    t.throws(() => loadSettings({ BASIC_AUTH: text }), { message: /BASIC_AUTH must be one of true, false/ }, text);
});

test('COMPRESSION has known encodings at most once, with levels that cost bounded memory', (t) => {
  for (const text of ['', 'br:4', 'gzip:9 zstd:3 br:0']) t.is(loadSettings({ COMPRESSION: text }).compression, text);
  for (const text of [
    'br',
    'br:5',
    'gzip:0',
    'zstd:4',
    'deflate:1',
    'br:1 br:2',
    'br:1,gzip:1',
    'br:1  gzip:1',
    'br:1 ',
  ])
    t.throws(() => loadSettings({ COMPRESSION: text }), { message: /COMPRESSION must not be "/ }, text);
});

test('every keyword in the schema of settings is enforced', (t) => {
  const prose = ['type', 'default', 'description', 'x-secret'];
  const enforced = ['minimum', 'maximum', 'minLength', 'maxLength', 'pattern', 'enum'];
  const used = new Set(Object.values(settingsSchema().properties).flatMap((each) => Object.keys(each)));
  t.deepEqual(
    [...used].filter((keyword) => ![...prose, ...enforced].includes(keyword)),
    [],
  );
  const wrong = {
    PER_PAGE_MAX: ['0', '100000000'],
    REDIS_SENTINEL_NAME: ['', 'x'.repeat(201)],
    TIME_ZONE: ['Europe Amsterdam'],
    DOCS: ['everywhere'],
  };
  for (const [name, values] of Object.entries(wrong))
    for (const value of values)
      t.throws(() => loadSettings({ [name]: value }), { message: new RegExp(`${name} must`) });
});
