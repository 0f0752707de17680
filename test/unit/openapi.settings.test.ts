import { Validator } from '@seriousme/openapi-schema-validator';
import test from 'ava';
import { loadResources } from '../../src/definition/load.js';
import { openapi } from '../../src/openapi/openapi.js';
import { loadSettings } from '../../src/settings.js';

const resources = loadResources('');
const defaults = { version: '1.0.0', ...loadSettings({}, { primaryUrls: 'postgres://primary/app' }) };
const document = openapi(resources, defaults);

test('every sentence that depends on a setting follows the setting', (t) => {
  const changed = {
    rateLimitPerMinute: 77,
    bodyBytesMax: 3_000,
    timeZone: 'Asia/Tokyo',
    perPageDefault: 25,
    perPageMax: 50,
    skipRowsMax: 500,
  };
  const text = JSON.stringify(openapi(resources, { ...defaults, ...changed, writesPerMinute: 20 }));
  t.true(text.includes('of which at most 20 writes'));
  t.false(JSON.stringify(document).includes('at most 0 writes'));
  for (const stale of ['60 requests', 'q=60;', '64 KiB', 'Europe/Amsterdam', '10000', '1000000 records']) {
    t.true(JSON.stringify(document).includes(stale), stale);
    t.false(text.includes(stale), stale);
  }
  for (const fresh of [
    '77 requests a minute',
    'q=77;',
    'at most 3000 bytes',
    'Asia/Tokyo',
    '"default":25',
    'more than 500 records',
  ])
    t.true(text.includes(fresh), fresh);
});

test('the contact comes from a setting: a name, a URL and an e-mail address, and is absent without it', (t) => {
  const contact = (apiContact: string) => openapi(resources, { ...defaults, apiContact }).info;
  t.false('contact' in contact(''));
  t.like(contact('api@example.com'), { contact: { email: 'api@example.com' } });
  t.like(contact('https://example.com/help'), { contact: { url: 'https://example.com/help' } });
  const whole = 'Help desk, api@example.com, https://example.com/help';
  t.is(loadSettings({ API_CONTACT: whole }).apiContact, whole);
  t.deepEqual(Object.values(Object(contact(whole)).contact), whole.split(', '));
  for (const wrong of ['call us', 'a@b, ', 'a@b, c@d', 'a@b, help', `${whole}, more`, 'https://a b'])
    t.throws(() => loadSettings({ API_CONTACT: wrong }), { message: /API_CONTACT/ }, wrong);
});

test('a gateway without a primary describes no writes and nothing that only writes use', async (t) => {
  const readOnly = openapi(resources, { ...defaults, primaryUrls: '' });
  const methods = new Set(Object.values(readOnly.paths).flatMap((item) => Object.keys(item)));
  t.deepEqual([...methods], ['get']);
  t.notRegex(JSON.stringify(readOnly), /Idempoten|write:|primary_unavailable":\{|installatie\.create|guarded writes/);
  t.true((await new Validator().validate(JSON.parse(JSON.stringify(readOnly)))).valid);
});

test('Basic is a security scheme only where BASIC_AUTH is on, and then of every operation that needs a token', (t) => {
  t.deepEqual(Object.keys(document.components.securitySchemes), ['bearer']);
  const { components, paths } = openapi(resources, { ...defaults, basicAuth: true });
  t.deepEqual(Object.keys(components.securitySchemes), ['bearer', 'basic']);
  for (const item of Object.values(paths))
    for (const { security } of Object.values(item)) t.true(security.length === 0 || security.length === 2);
});
