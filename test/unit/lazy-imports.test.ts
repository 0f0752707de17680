import { createRequire } from 'node:module';
import test from 'ava';
import '../../src/gateway.js';

test('a gateway loads the packages of Redis and of traces only when they are configured', (t) => {
  const loaded = Object.keys(createRequire(import.meta.url).cache);
  t.true(loaded.some((file) => file.includes('/node_modules/pg/')));
  t.deepEqual(
    loaded.filter((file) => /\/node_modules\/(?:ioredis|@opentelemetry\/(?!api\/))/.test(file)),
    [],
  );
});
