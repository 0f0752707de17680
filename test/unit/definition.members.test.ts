import test from 'ava';
import { loadResources } from '../../src/definition/load.js';
import type { Field, Resource } from '../../src/definition/resource.js';
import { compileSerializer } from '../../src/definition/row-serializer.js';
import { compileStatements } from '../../src/definition/statements.js';
import { compileWriteValidators } from '../../src/definition/write-validators.js';
import type { Event } from '../../src/events.js';
import { Row } from '../../src/postgres/row.js';
import { parseKeyring } from '../../src/projection/keyring.js';
import { compileRedaction, type ProjectionOptions } from '../../src/projection/redact.js';
import { altered, field, load } from '../support/definitions.js';

const member = (column: string, pointer: string, type: string, more: object = {}): object =>
  field(column, type, { pointer, nullable: true, ...more });
const sealed = { codec: 'base64' };
const definition = {
  name: 'customers',
  record: 'customer',
  description: 'Customers.',
  view: 'records.customers',
  order: ['made', 'id'],
  fields: {
    id: field('id', 'bigint'),
    made: field('made', 'date'),
    name: member('vault', '/name', 'text', sealed),
    address: {
      description: 'A.',
      group: {
        town: member('vault', '/places/1/town', 'text', sealed),
        number: member('vault', '/no', 'number', sealed),
      },
    },
    rank: member('data', '/a~1b', 'integer'),
    since: member('data', '/since', 'date'),
    active: member('data', '/active', 'boolean'),
    rest: member('data', '/rest', 'json', { clean: 'json-images' }),
  },
};
const [customers] = load({ 'customers.json': definition }) as [Resource];

const projectionOptions: ProjectionOptions = {
  keyring: parseKeyring('{}'),
  legacy: false,
  decrypt: 'native',
  reportMismatch: () => {},
  redaction: compileRedaction({}, []),
};
const base64 = (text: string): string => Buffer.from(text).toString('base64');

/** The record of a row with these cells, and the failures it reported. */
function recordOf(vault: string | null, data: string | null): { json: string; failures: string[] } {
  const failures: string[] = [];
  const observe = (event: Event): void => {
    if (event.type === 'decode_failed') failures.push(`${event.pointer} ${event.reason}`);
  };
  const { json } = compileSerializer(customers, projectionOptions, observe);
  return { json: json(Row.of(['1', '2026-01-31', vault, data]), 'w'), failures };
}

test('several members are filled from one cell, encoded or JSON, which is selected once', (t) => {
  const vault = '{"name":"De \\"Boer\\" \\u00e9","places":[{},{"town":"Utrecht"}],"no":12.50}';
  const data = '{"rest": {"n": 12345678901234567890}, "a/b": -3, "since": "2020-02-29", "active": true}';
  const { json, failures } = recordOf(base64(vault), data);
  t.is(
    json,
    '{"id":"1","made":"2026-01-31","name":"De \\"Boer\\" \\u00e9","address":{"town":"Utrecht","number":12.50},' +
      '"rank":-3,"since":"2020-02-29","active":true,"rest":{"n": 12345678901234567890}}',
  );
  t.deepEqual(failures, []);
  t.is(compileStatements(customers).detail?.text.match(/"vault"/g)?.length, 1);
});

test('what is not in a cell is null, and so is all of a cell that is NULL', (t) => {
  const nothing =
    '{"id":"1","made":"2026-01-31","name":null,"address":{"town":null,"number":null},' +
    '"rank":null,"since":null,"active":null,"rest":null}';
  for (const [vault, data] of [
    [null, null],
    [base64('{}'), '[]'],
    [base64(' {"name":null,"places":{"1":3}}'), '"text"'],
  ] as const)
    t.deepEqual(recordOf(vault, data), { json: nothing, failures: [] });
});

test('members of another type, and cells that are not JSON, are null and named in decodeErrors', (t) => {
  const { json, failures } = recordOf('e30', '{"a/b":1.5,"since":"2020-02-30","active":"true","rest":[]}');
  const failed = ['/name', '/address/town', '/address/number', '/rank', '/since', '/active'];
  t.deepEqual(JSON.parse(json).decodeErrors, failed);
  t.deepEqual(
    failures,
    failed.map((pointer) => `${pointer} bad_format`),
  );
  for (const broken of ['{"name":"x"', '{"name":"a\nb"}', 'x'])
    t.deepEqual(recordOf(base64(broken), null).failures.slice(0, 1), ['/name bad_format'], broken);
  t.deepEqual(JSON.parse(json).rest, []);
});

test('a field of type json shows the whole of an encoded document, images removed', (t) => {
  const whole = altered(definition, 'fields', {
    id: field('id', 'bigint'),
    made: field('made', 'date'),
    document: field('vault', 'json', { codec: 'base64', clean: 'json-images' }),
  });
  const [resource] = load({ 'customers.json': whole }) as [Resource];
  const { json } = compileSerializer(resource, projectionOptions, () => {});
  const shown = (text: string): unknown => JSON.parse(json(Row.of(['1', '2026-01-31', base64(text)]), 'w')).document;
  t.deepEqual(shown(' {"a": [1, "data:image/png;base64,iVBORw0KGgo="]}\n'), { a: [1, null] });
  t.is(shown('{"a"'), null);
  t.is(shown('null'), null);
});

test('a row does not show the cells of the row before it', (t) => {
  const { json } = compileSerializer(customers, projectionOptions, () => {});
  const named = (name: string): Row => Row.of(['1', '2026-01-31', base64(`{"name":"${name}"}`), '{}']);
  t.deepEqual([JSON.parse(json(named('a'), 'w')).name, JSON.parse(json(named('b'), 'w')).name], ['a', 'b']);
});

test('images are removed from members', (t) => {
  const { json } = recordOf(null, '{"rest":{"handtekening":"data:image/png;base64,iVBORw0KGgo="}}');
  t.deepEqual(JSON.parse(json).rest, { handtekening: null });
});

test('a pattern that backtracks without end refuses the value, and does not stop the gateway', (t) => {
  const installations = loadResources('').find(({ name }) => name === 'installaties') as Resource;
  const { naam } = installations.fields as Record<string, Field>;
  const { patch } = compileWriteValidators({
    ...installations,
    fields: { ...installations.fields, naam: { ...naam, write: { schema: { pattern: '^(a+)+$' } } } as Field },
  });
  t.deepEqual(patch({ naam: 'a'.repeat(60) }), []);
  t.like(patch({ naam: `${'a'.repeat(60)}!` }), [{ pointer: '/naam', code: 'invalid_format' }]);
});
