import { startGateway } from '../../src/gateway.js';
import type { OpenApiDocument } from '../../src/openapi/document.js';
import { disagreements, untouched } from '../support/fuzz/aftermath.js';
import { fuzz } from '../support/fuzz/fuzz.js';
import { fuzzSettings, metricsFaults } from '../support/fuzz/gateway.js';
import { LogWatch } from '../support/fuzz/log-watch.js';
import { makeWorld, type Sql } from '../support/fuzz/world.js';
import { gatewayTest, shared } from '../support/workspace.js';

const test = gatewayTest();

test('2,500 requests of every kind: no 5xx, no value of another workspace, no value that must stay hidden', async (t) => {
  const { database } = t.context;
  const sql: Sql = async (text, values) => (await database.primary.query(text, values)).rows;
  const world = await makeWorld(sql, shared.keys, 24);
  await database.caughtUp();
  const log = new LogWatch(world);
  const gateway = await startGateway({ ...database.settings, ...fuzzSettings }, log);
  t.teardown(() => gateway.stop());
  const document = (await (await fetch(`${gateway.url}/api/v1/openapi.json`)).json()) as OpenApiDocument;
  const before = new Date();
  const stateBefore = await untouched(sql, before);

  const seed = Number(process.env.FUZZ_SEED ?? 20_261_121);
  const run = await fuzz({ origin: gateway.url, document, world, seed, requests: 2_500, parallel: 16 });

  t.log(`${run.requests} requests in ${run.seconds.toFixed(1)} s, seed ${seed}`);
  t.log(
    [...run.statuses]
      .sort(([a], [b]) => a - b)
      .map(([status, count]) => `${status}: ${count}`)
      .join(', '),
  );
  t.is(run.failure, null);
  t.true(run.requests >= 2_500);
  const successes = [...run.statuses].reduce((sum, [status, count]) => sum + (status < 300 ? count : 0), 0);
  t.true(successes >= run.requests * 0.4, 'two in five succeed, so that what lies behind the checks is reached');
  t.deepEqual(
    expectedCodes.filter((code) => !run.codes.has(code)),
    [],
    'every kind of refusal was met',
  );
  t.true(log.lines > run.requests);
  t.deepEqual(log.faults, []);
  t.deepEqual(await metricsFaults(gateway), []);
  t.deepEqual(await disagreements(sql), []);
  t.deepEqual(await untouched(sql, before), stateBefore);
});

const expectedCodes = [
  ...['invalid_request', 'malformed_json', 'idempotency_key_missing', 'idempotency_key_invalid', 'if_match_invalid'],
  ...['token_missing', 'token_invalid', 'insufficient_scope', 'not_found', 'method_not_allowed', 'not_acceptable'],
  ...['precondition_failed', 'payload_too_large', 'uri_too_long', 'unsupported_media_type'],
  ...['expectation_failed', 'idempotency_key_reused', 'precondition_required', 'headers_too_large', 'not_implemented'],
];
