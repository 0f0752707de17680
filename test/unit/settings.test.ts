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
