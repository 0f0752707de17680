import { fuzzGateway } from '../support/fuzz/gateway.js';
import { gatewayTest } from '../support/workspace.js';

const test = gatewayTest();

test('1,000 requests of every kind: no 5xx, no value of another workspace, no value that must stay hidden', async (t) => {
  const { primary, settings, caughtUp } = t.context.database;
  const seed = Number(process.env.FUZZ_SEED ?? 20_261_121);
  const run = await fuzzGateway({
    settings,
    sql: async (text, values) => (await primary.query(text, values)).rows,
    caughtUp,
    seed,
    requests: 1_000,
  });

  t.log(`${run.requests} requests in ${run.seconds.toFixed(1)} s, seed ${seed}`);
  const statuses = [...run.statuses].sort(([a], [b]) => a - b);
  t.log(statuses.map(([status, count]) => `${status}: ${count}`).join(', '));
  t.deepEqual(run.faults, []);
  t.true(run.requests >= 1_000);
  const successes = statuses.reduce((sum, [status, count]) => sum + (status < 300 ? count : 0), 0);
  t.true(successes >= run.requests * 0.4, 'two in five succeed, so that what lies behind the checks is reached');
  const unmet = expectedCodes.filter((code) => !run.codes.has(code));
  t.deepEqual(unmet, [], 'every frequent kind of refusal was met');
  t.true(run.logLines > run.requests);
});

/** 1,000 requests do not meet each of the others. */
const expectedCodes = [
  ...['invalid_request', 'malformed_json', 'idempotency_key_missing', 'idempotency_key_invalid', 'if_match_invalid'],
  ...['token_missing', 'token_invalid', 'insufficient_scope', 'not_found', 'method_not_allowed', 'uri_too_long'],
  ...['unsupported_media_type', 'expectation_failed', 'headers_too_large', 'not_implemented'],
];
