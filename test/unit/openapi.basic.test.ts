import test from 'ava';
import { loadResources } from '../../src/definition/load.js';
import { openapi } from '../../src/openapi/openapi.js';
import { loadSettings } from '../../src/settings.js';

test('Basic is a security scheme only where BASIC_AUTH is on, and then of every operation that needs a token', (t) => {
  const describe = (overrides: object) =>
    openapi(loadResources(''), { version: '1.0.0', ...loadSettings({}, overrides) });
  t.deepEqual(Object.keys(describe({}).components.securitySchemes), ['bearer']);
  const { components, paths } = describe({ basicAuth: true });
  t.deepEqual(Object.keys(components.securitySchemes), ['bearer', 'basic']);
  for (const item of Object.values(paths))
    for (const { security } of Object.values(item)) t.true(security.length === 0 || security.length === 2);
});
