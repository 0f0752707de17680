import { request } from 'node:http';
import { codeOf, faultsOf } from '../support/lists.js';
import { customerOf } from '../support/primary-side.js';
import { gatewayTest } from '../support/workspace.js';
import { created, newKey, patch, post } from '../support/writes.js';

const test = gatewayTest();
const readOnly = [
  'id',
  'koudemiddel',
  'koudemiddelGwp',
  'vullingKg',
  'interneNotities',
  'lmraVerplicht',
  'version',
  'createdAt',
  'updatedAt',
];

test('all faults of a body are named at once, each with its place', async (t) => {
  const { client } = t.context;
  const body = {
    naam: '',
    omschrijving: 'o'.repeat(4001),
    locatie: 1,
    merk: ['Daikin'],
    type: { a: 1 },
    serienummer: false,
    bouwjaar: 1899,
    inbedrijfstelling: '2023-02-29',
    koudemiddel: 'R32',
    vullingKg: null,
    kleur: 'wit',
    'a/b~c': 1,
  };
  const faults = [
    '/naam too_short',
    '/naam invalid_format',
    '/omschrijving too_long',
    '/locatie invalid_type',
    '/merk invalid_type',
    '/type invalid_type',
    '/serienummer invalid_type',
    '/bouwjaar out_of_range',
    '/inbedrijfstelling invalid_format',
    '/koudemiddel read_only',
    '/vullingKg read_only',
    '/kleur unknown_field',
    '/a~1b~0c unknown_field',
  ];
  const given = faults.filter((fault) => fault !== '/naam invalid_format');
  const reply = await post(client, body);
  t.is(codeOf(reply), 'invalid_request');
  t.deepEqual(faultsOf(reply).sort(), ['/customerId required', ...given].sort());
  t.deepEqual(faultsOf(await patch(client, 'x', '"v1"', body)).sort(), given.sort());
});

test('each field outside the write scope is read_only, in POST and PATCH, whatever its value', async (t) => {
  const { client, database } = t.context;
  const record = await created(client, { naam: 'x', customerId: await customerOf(database) });
  for (const field of readOnly) {
    for (const value of [record[field], null, 'x', {}]) {
      const bodies = [
        await post(client, { naam: 'x', customerId: record.customerId, [field]: value ?? null }),
        await patch(client, record.id, '"v1"', { [field]: value ?? null }),
      ];
      for (const reply of bodies) t.deepEqual(faultsOf(reply), [`/${field} read_only`]);
    }
  }
});

test('values that PostgreSQL would refuse are faults of the body', async (t) => {
  const { client, database } = t.context;
  const customerId = await customerOf(database);
  const bad: [object, string][] = [
    [{ inbedrijfstelling: '0000-01-01' }, '/inbedrijfstelling invalid_format'],
    [{ inbedrijfstelling: '2020-1-1' }, '/inbedrijfstelling invalid_format'],
    [{ inbedrijfstelling: 'infinity' }, '/inbedrijfstelling invalid_format'],
    [{ inbedrijfstelling: '2020-01-01T00:00:00Z' }, '/inbedrijfstelling invalid_format'],
    [{ bouwjaar: 2101 }, '/bouwjaar out_of_range'],
    [{ bouwjaar: 2019.5 }, '/bouwjaar invalid_type'],
    [{ bouwjaar: '2019' }, '/bouwjaar invalid_type'],
    [{ bouwjaar: 1e15 }, '/bouwjaar out_of_range'],
    [{ naam: ' \t' }, '/naam invalid_format'],
    [{ naam: null }, '/naam not_nullable'],
    [{ customerId: null }, '/customerId not_nullable'],
    [{ customerId: 7 }, '/customerId invalid_type'],
    [{ customerId: `urn:uuid:${customerId}` }, '/customerId invalid_format'],
    [{ customerId: `{${customerId}}` }, '/customerId invalid_format'],
    [{ customerId: `${customerId} ` }, '/customerId invalid_format'],
  ];
  for (const [members, fault] of bad) {
    t.deepEqual(faultsOf(await post(client, { naam: 'x', customerId, ...members })), [fault], JSON.stringify(members));
  }
  for (const inbedrijfstelling of ['0001-01-01', '9999-12-31', '2000-02-29']) {
    t.is((await created(client, { naam: 'x', customerId, inbedrijfstelling })).inbedrijfstelling, inbedrijfstelling);
  }
});

test('a body that is no object is refused with that fault', async (t) => {
  for (const body of ['[]', '"x"', '7', 'true', 'null']) {
    const reply = await post(t.context.client, body);
    t.is(codeOf(reply), 'invalid_request');
    t.deepEqual(faultsOf(reply), [body === 'null' ? ' not_nullable' : ' invalid_type']);
  }
});

test('only JSON in UTF-8 without a content coding is taken', async (t) => {
  const { client, database } = t.context;
  const body = { naam: 'x', customerId: await customerOf(database) };
  const types = [
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/jsonp',
    'text/json',
    '',
    'application/json; charset=iso-8859-1',
    'application/json; charset="utf-16"',
    'application/merge-patch+json',
    'application/json, text/plain',
    'application/*',
  ];
  for (const type of types) {
    const reply = await post(client, body, { headers: { 'content-type': type } });
    t.is(reply.status, 415, type);
    t.is(codeOf(reply), 'unsupported_media_type', type);
  }
  for (const type of [
    'APPLICATION/JSON',
    'application/json;charset=utf-8',
    'application/json; Charset="UTF-8"',
    'application/json; profile="a;b"',
    'application/json ;',
  ]) {
    t.is((await post(client, body, { headers: { 'content-type': type } })).status, 201, type);
  }
  for (const coding of ['gzip', 'br', 'deflate', 'gzip, identity']) {
    t.is((await post(client, body, { headers: { 'content-encoding': coding } })).status, 415, coding);
  }
  t.is((await post(client, body, { headers: { 'content-encoding': 'identity' } })).status, 201);
  const merge = await patch(client, 'x', '"v1"', {}, { headers: { 'content-type': 'text/plain' } });
  t.is(merge.headers['accept-patch'], 'application/json, application/merge-patch+json');
});

test('a body of 64 KiB is read, one byte more is refused', async (t) => {
  const { client } = t.context;
  const body = (bytes: number): string => `{"x":"${'é'.repeat((bytes - 8) / 2)}"}`;
  const fits = await post(client, body(65_536));
  t.is(fits.status, 400);
  t.true(faultsOf(fits).includes('/x unknown_field'));
  const reply = await post(client, `${body(65_536)} `);
  t.is(reply.status, 413);
  t.is(codeOf(reply), 'payload_too_large');
});

test('a chunked body that turns out to be too large is refused with 413, and the client gets to read that', async (t) => {
  const { gateway, token } = t.context;
  for (const chunks of [2, 20, 200]) {
    const status = await new Promise<number | undefined>((resolve, reject) => {
      const headers = {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        'idempotency-key': newKey(),
      };
      const sent = request(`${gateway.url}/api/v1/installaties`, { method: 'POST', headers, agent: false }, (reply) => {
        reply.resume();
        resolve(reply.statusCode);
      });
      sent.on('error', reject);
      for (let i = 0; i < chunks; i++) sent.write(' '.repeat(60_000));
      sent.end();
    });
    t.is(status, 413, `${chunks} chunks`);
  }
});
