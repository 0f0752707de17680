import { codeOf } from '../support/lists.js';
import { gatewayTest } from '../support/workspace.js';

// Each request has several things wrong with it; the answer tells which one is looked at first.
const test = gatewayTest();
const html = { accept: 'text/html' };
const unknown = '00000000-0000-4000-8000-000000000000';

test('a path that is not there comes before the token', async (t) => {
  const reply = await t.context.client.get('/facturen?x=1', { token: 'x', headers: html });
  t.is(codeOf(reply), 'not_found');
});

test('a method that is not there comes before the token', async (t) => {
  const reply = await t.context.client.request('DELETE', '/klanten?x=1', { token: 'x', headers: html });
  t.is(codeOf(reply), 'method_not_allowed');
});

test('the token comes before Accept and parameters', async (t) => {
  t.is(codeOf(await t.context.client.get('/klanten?x=1', { token: 'x', headers: html })), 'token_invalid');
  t.is(codeOf(await t.context.client.get('/klanten?x=1', { token: null, headers: html })), 'token_missing');
});

test('the limit comes before the scope', async (t) => {
  const { client } = await t.context.database.gateway({ rateLimitPerMinute: 1 });
  const token = await t.context.database.token({ scopes: [] });
  t.is(codeOf(await client.get('/klanten?x=1', { token, headers: html })), 'insufficient_scope');
  t.is(codeOf(await client.get('/klanten?x=1', { token, headers: html })), 'rate_limited');
});

test('the scope comes before Accept', async (t) => {
  const token = await t.context.database.token({ scopes: ['read:logboeken'] });
  for (const path of ['/klanten?x=1', `/klanten/${unknown}?x=1`]) {
    t.is(codeOf(await t.context.client.get(path, { token, headers: html })), 'insufficient_scope');
  }
});

test('Accept comes before the parameters', async (t) => {
  for (const path of ['/klanten?x=1', `/klanten/${unknown}?x=1`, '/openapi.json?x=1', '?x=1']) {
    t.is(codeOf(await t.context.client.get(path, { headers: html })), 'not_acceptable');
  }
});

test('headers and parameters come before the look-up', async (t) => {
  const { client } = t.context;
  t.is(codeOf(await client.get(`/klanten/${unknown}?x=1`)), 'invalid_request');
  t.is(codeOf(await client.get(`/installaties/${unknown}`, { headers: { 'if-match': 'v1' } })), 'if_match_invalid');
});

test('an unknown record comes before the precondition', async (t) => {
  const reply = await t.context.client.get(`/installaties/${unknown}`, { headers: { 'if-match': '"v1"' } });
  t.is(codeOf(reply), 'not_found');
});
