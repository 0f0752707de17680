import test from 'ava';
import { loadSettings, settingsSchema, settingTypes } from '../../src/settings.js';

test('the schema describes every setting of the code with its type or values, and no other', (t) => {
  const described = Object.entries(settingsSchema().properties).map(([name, { type, enum: values }]) => {
    const known = Array.isArray(settingTypes[name as keyof typeof settingTypes]);
    return [name, known ? values : type === 'integer' ? 'number' : type];
  });
  t.deepEqual(Object.fromEntries(described), { ...settingTypes });
});

test('the defaults are valid settings, each of its type', (t) => {
  const types = Object.entries(loadSettings({})).map(([name, value]) => [name, typeof value]);
  const expected = Object.entries(settingTypes).map(([name, type]) => [name, Array.isArray(type) ? 'string' : type]);
  t.deepEqual(Object.fromEntries(types), Object.fromEntries(expected));
});
