import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import test from 'ava';
import fc from 'fast-check';
import type { FieldError } from '../../src/base/errors.js';
import type { Event } from '../../src/base/events.js';
import { projectRoot } from '../../src/base/paths.js';
import { Row } from '../../src/postgres/row.js';
import { compileResource } from '../../src/resource/compiled.js';
import { fieldTypes } from '../../src/resource/definition/field-types.js';
import { filterKinds, parameterNames, parseFilter } from '../../src/resource/definition/filter-kinds.js';
import { loadResources } from '../../src/resource/definition/load.js';
import { makeWriteSchema } from '../../src/resource/definition/record-schema.js';
import type { Field, Resource } from '../../src/resource/definition/resource.js';
import { compileBodyChecks } from '../../src/resource/definition/write-validators.js';
import { parseKeyring } from '../../src/resource/projection/keyring.js';
import { compileRedaction, type ProjectionOptions } from '../../src/resource/projection/redact.js';
import { compileSerializer } from '../../src/resource/serializer/row-serializer.js';
import { compileStatements } from '../../src/resource/statements/statements.js';
import { openLog } from '../../src/serve/ops/log.js';
import { altered, field, items, load, owners } from '../support/definitions.js';

test('definitions that fit together are loaded, in the order of their files, with types and defaults resolved', (t) => {
  const [first, second] = load({ 'b.json': items, 'a.json': owners, 'notes.txt': 'no definition' }) as [
    Resource,
    Resource,
  ];
  t.deepEqual([first.name, second.name], ['owners', 'items']);
  t.deepEqual([first.idType, second.idType], ['bigint', 'uuid']);
  t.deepEqual([first.detail, first.table, first.write], [true, 'owners', undefined]);
  t.like(first.filters, { ids: { column: 'id', kind: 'ids', type: 'bigint' } });
  t.deepEqual(second.order, [
    { column: 'made_at', type: 'timestamp' },
    { column: 'id', type: 'uuid' },
  ]);
  t.is(second.filters.state?.type, 'text');
  t.is(second.write?.ids, 'gateway');
  const [, unlogged] = load({ 'a.json': owners, 'b.json': altered(items, 'write/audit', false) });
  t.is(unlogged?.write?.audit, false);
});

test('the schema of definitions names every field type, filter kind and reserved name, and nothing else', (t) => {
  const { $defs, properties } = JSON.parse(readFileSync(join(projectRoot, 'config/resource.schema.json'), 'utf8'));
  const reserved = parameterNames.map(({ source }) => source.slice(2, -2)).join('|');
  t.is(properties.filters.propertyNames.not.pattern, `^(${reserved})$`);
  t.deepEqual($defs.field.properties.type.enum, Object.keys(fieldTypes));
  t.deepEqual(['ids', ...$defs.filter.properties.kind.enum].sort(), Object.keys(filterKinds).sort());
});

for (const schema of ['resource.schema.json', 'settings.schema.json']) {
  test(`config/${schema}, which is not validated at each start, is a JSON Schema`, (t) => {
    const ajv = new Ajv2020();
    ajv.validateSchema(JSON.parse(readFileSync(join(projectRoot, 'config', schema), 'utf8')));
    t.is(ajv.errors ?? null, null);
  });
}

test('every key of the schema of definitions is described', (t) => {
  const undescribed: string[] = [];
  const visit = (schema: unknown, path: string): void => {
    if (typeof schema !== 'object' || schema === null) return;
    for (const [name, value] of Object.entries(schema)) {
      if (['if', 'then', 'else', 'allOf'].includes(name)) continue; // conditions, which say what is wrong
      if (name === 'properties')
        for (const [key, { description }] of Object.entries(value as Record<string, { description?: string }>))
          if (!description) undescribed.push(`${path}/${key}`);
      visit(value, `${path}/${name}`);
    }
  };
  visit(JSON.parse(readFileSync(join(projectRoot, 'config/resource.schema.json'), 'utf8')), '');
  t.deepEqual(undescribed, []);
});

test('the definitions of the product show what they always have', (t) => {
  const resources = loadResources('');
  t.deepEqual(
    resources.map(({ name, detail, write }) => [name, detail, write !== undefined]),
    [
      ['installaties', true, true],
      ['klanten', true, false],
      ['logboeken', false, false],
      ['werkbonnen', true, false],
    ],
  );
});

const values: readonly (readonly [keyof typeof fieldTypes, string[], string[], string[]])[] = [
  ['uuid', ['5f0d7c1e-8a43-4c52-9b1d-3f6e2a9c7d10'], ['x', '5F0D7C1E-8A43-4C52-9B1D-3F6E2A9C7D10'], []],
  ['bigint', ['0', '-5', '9223372036854775807'], ['9223372036854775808', '01', '1e3', 'x'], []],
  ['text', ['x', 'é'], ['\0'], []],
  ['integer', ['0', '-5', '42'], [], ['1e3', '+1', '0x10', '4.2', '9223372036854775808']],
  ['boolean', ['true', 'false'], [], ['t', '1', 'True']],
  ['date', ['2026-02-28', '0001-01-01'], [], ['2026-02-30', '0000-01-01', '2026-1-1', '20260101']],
  [
    'timestamp',
    ['2026-02-28T00:00:00Z', '2026-02-28t23:59:59.123456+14:30'],
    [],
    ['2026-02-28', '2026-02-28T24:00:00Z', '2026-02-28T00:00:00'],
  ],
];
for (const [type, taken, nothing, refused] of values) {
  test(`a filter takes values of type ${type}, finds nothing by those that cannot exist and refuses the rest`, (t) => {
    const parse = (text: string): [string | null, number] => {
      const faults: FieldError[] = [];
      return [parseFilter('f', { column: 'c', kind: 'equals', type, description: '' }, text, faults), faults.length];
    };
    for (const text of taken) t.deepEqual(parse(text), [text, 0]);
    for (const text of nothing) t.deepEqual(parse(text), [null, 0], text);
    for (const text of refused) t.deepEqual(parse(text), [null, 1], text);
  });
}

test('a list of texts is bound as an array, whatever characters its values have', (t) => {
  const faults: FieldError[] = [];
  const filter = { column: 'c', kind: 'ids', type: 'text', description: '' } as const;
  const texts = ['a', '"b"', '\\', '{}', 'NULL', 'c,d', 'a\0'];
  t.is(parseFilter('f', filter, texts, faults), '{"a","\\"b\\"","\\\\","{}","NULL","c,d"}');
  t.deepEqual(faults, []);
});

test('statements of a combination of filters are built once, whatever the order of the names', (t) => {
  const { list } = compileStatements(withFilters(3));
  const [, first, second, both] = subsetsOf(2) as [string[], string[], string[], string[]];
  t.is(list([...both].reverse()), list(both));
  t.not(list(first), list(second));
});

test('statements of a cut have rows of their own, and the keys and counts of whole rows', (t) => {
  const { list } = compileStatements(withFilters(1));
  const whole = list([]);
  const cuts = ['a', 'b'].map((name) => list([], 'asc', { fields: [name], columns: ['id', name] }));
  t.is(new Set([whole, ...cuts].map(({ rows }) => rows.all.name)).size, 3);
  for (const { keys, count, last } of cuts) t.deepEqual([keys, count, last], [whole.keys, whole.count, whole.last]);
});

test('the key of a list is compared by all its columns, and where a page begins by the first alone, which prunes partitions', (t) => {
  const [, resource] = load({ 'a.json': owners, 'b.json': items }) as [Resource, Resource];
  const { rows } = compileStatements(resource).list(['state']);
  t.regex(
    rows.between.text,
    /"made_at" >= \$2 and \("made_at", "id"\) > \(\$3, \$4\) and \("made_at", "id"\) <= \(\$5, \$6\)/,
  );
  t.deepEqual(rows.between.parameters, [...['state', 'after0', 'after0', 'after1', 'until0', 'until1', 'limit']]);
});

test('no statement compares a column by itself from both sides, for which PostgreSQL expects 0.5 % of the rows, but for one value', (t) => {
  for (const resource of loadResources('')) {
    const { list } = compileStatements(resource);
    const ofOneValue = Object.values(resource.filters).flatMap((each) => (each.nearlyUnique ? each.column : []));
    ofOneValue.push('id');
    for (const direction of ['asc', 'desc'] as const) {
      const { rows, keys, last, count } = list(Object.keys(resource.filters), direction);
      for (const { name, text } of [...Object.values(rows), ...Object.values(keys), last, count]) {
        const sides = (operator: '<' | '>') =>
          [...text.matchAll(RegExp(`"(\\w+)" ${operator}`, 'g'))].map(([, name = '']) => name);
        const lower = sides('>');
        const unbounded = sides('<').filter((column) => lower.includes(column) && !ofOneValue.includes(column));
        t.deepEqual(unbounded, [], name);
      }
    }
  }
});

/** Makes a resource with so many filters of long names. */
function withFilters(count: number): Resource {
  const names = subsetsOf(count).at(-1) as string[];
  const named = (row: object): object =>
    Object.fromEntries(names.map((name, i) => [name, { ...row, column: `a_rather_long_name_of_a_column_${i}` }]));
  const fields = { ...items.fields, ...named(items.fields.state) };
  return load({ 'a.json': owners, 'b.json': { ...items, filters: named(items.filters.state), fields } })[1] as Resource;
}

function subsetsOf(count: number): string[][] {
  return Array.from({ length: 2 ** count }, (_, bits) =>
    Array.from({ length: count }, (_, i) => `anUncommonlyLongFilter${i}`).filter((_, i) => bits & (1 << i)),
  );
}

test('a nearly unique number is compared as the largest type that its column can have, and labels are not nearly unique', (t) => {
  const numbered = altered(altered(items, 'fields/state/type', 'integer'), 'fields/state/write', undefined);
  const definition = altered(numbered, 'filters/state/nearlyUnique', true);
  const [resource] = load({ 'items.json': definition, 'owners.json': owners }) as [Resource];
  const { text } = compileStatements(resource).list(['state']).rows.all;
  t.regex(text, /"state" = any\(array\[\$\d::bigint\]::bigint\[\]\)/);
  t.throws(() => load({ 'items.json': altered(definition, 'fields/state/type', 'enum'), 'owners.json': owners }), {
    message: /\/filters\/state\/column: column state of type enum cannot be nearly unique; use uuid/,
  });
});

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
    rest: member('data', '/rest', 'json', { show: ['/n', '/handtekening', ''] }),
  },
};
const [customers] = load({ 'customers.json': definition }) as [Resource];

const projectionOptions: ProjectionOptions = {
  keyring: parseKeyring('{}'),
  legacy: false,
  redaction: compileRedaction({}),
};
const base64 = (text: string): string => Buffer.from(text).toString('base64');

/** Writes the record of a row with these cells, and notes the failures. */
function recordOf(vault: string | null, data: string | null): { json: string; failures: string[] } {
  const failures: string[] = [];
  const observe = (event: Event): void => {
    if (event.type === 'decode_failed') failures.push(`${event.pointer} ${event.reason}`);
  };
  const { toJson: json } = compileSerializer(customers, projectionOptions, observe);
  return { json: json(Row.make(['1', '2026-01-31', vault, data]), 'w'), failures };
}

test('several members are filled from one cell, encoded or JSON, which is selected once', (t) => {
  const vault = '{"name":"De \\"Boer\\" \\u00e9","places":[{},{"town":"Utrecht"}],"no":12.50}';
  const data = '{"rest": {"n": 12345678901234567890}, "a/b": -3, "since": "2020-02-29", "active": true}';
  const { json, failures } = recordOf(base64(vault), data);
  t.is(
    json,
    '{"id":"1","made":"2026-01-31","name":"De \\"Boer\\" \\u00e9","address":{"town":"Utrecht","number":12.50},' +
      '"rank":-3,"since":"2020-02-29","active":true,"rest":{"n":12345678901234567890}}',
  );
  t.deepEqual(failures, []);
  t.is(compileStatements(customers).detail?.text.match(/"vault"/g)?.length, 1);
});

test('a value on which our own code fails is null, and the log has the frames of the error without its message', (t) => {
  const row = Row.make(['1', '2026-01-31', base64('{}'), null]);
  row.getText = (at) => (at === 0 ? '1' : (undefined as never)['Jansen' as never]);
  const lines: string[] = [];
  const log = openLog('warn', () => {}, { write: (line) => void lines.push(line) });
  t.regex(compileSerializer(customers, projectionOptions, log.add).toJson(row, 'w'), /"decodeErrors":\["\/name"/);
  const { reason, error, stack } = JSON.parse(lines[0] as string);
  t.deepEqual([reason, error, lines.join().includes('Jansen')], ['unexpected', 'TypeError', false]);
  t.regex(stack, /^ {4}at .*definition\.test/);
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
  const expected = failed.map((pointer) => `${pointer} bad_format`);
  t.deepEqual(failures, expected);
  for (const broken of ['{"name":"x"', '{"name":"a\nb"}', 'x'])
    t.deepEqual(recordOf(base64(broken), null).failures.slice(0, 1), ['/name bad_format'], broken);
  t.deepEqual(JSON.parse(json).rest, []);
  const begun = recordOf(null, '{"rest":[1 2]}'); // its first bytes are written before the fault shows
  t.is(JSON.parse(begun.json).rest, null);
});

test('a field of type json shows the listed members of an encoded document or of a member, images removed', (t) => {
  const whole = altered(definition, 'fields', {
    id: field('id', 'bigint'),
    made: field('made', 'date'),
    document: field('vault', 'json', { codec: 'base64', show: ['/a'] }),
  });
  const [resource] = load({ 'customers.json': whole }) as [Resource];
  const { toJson: json } = compileSerializer(resource, projectionOptions, () => {});
  const shown = (text: string): unknown => JSON.parse(json(Row.make(['1', '2026-01-31', base64(text)]), 'w')).document;
  t.deepEqual(shown(` {"b": 1, "a": [1, "data:image/png;base64,${'A'.repeat(200)}"]}\n`), { a: [1, null] });
  t.is(shown('{"a"'), null);
  t.is(shown('null'), null);
  const member = recordOf(null, `{"rest":{"handtekening":"data:image/png;base64,${'A'.repeat(200)}"}}`);
  t.deepEqual(JSON.parse(member.json).rest, { handtekening: null });
});

test('a row shows nothing of the row before it, also where our own code failed in that', (t) => {
  const fault = (): never => {
    throw new TypeError('a fault of our own');
  };
  const { toJson: json } = compileSerializer(customers, projectionOptions, fault);
  const named = (name: string): Row => Row.make(['1', '2026-01-31', base64(`{"name":${name}}`), '{}']);
  const shown = (name: string) => JSON.parse(json(named(name), 'w'));
  t.throws(() => shown('1'), { message: 'a fault of our own' });
  for (const name of ['a', 'b']) t.like(shown(`"${name}"`), { name, decodeErrors: undefined });
});

test('a pattern that backtracks without end refuses the value, and does not stop the gateway', (t) => {
  const installations = loadResources('').find(({ name }) => name === 'installaties') as Resource;
  const { naam } = installations.fields as Record<string, Field>;
  const { patch } = compileBodyChecks({
    ...installations,
    fields: { ...installations.fields, naam: { ...naam, write: { schema: { pattern: '^(a+)+$' } } } as Field },
  });
  t.deepEqual(patch({ naam: 'a'.repeat(60) }), []);
  t.like(patch({ naam: `${'a'.repeat(60)}!` }), [{ pointer: '/naam', code: 'invalid_format' }]);
});

const boundValue = fc.constantFrom(0, 1, 2, 3, 7, 2.5, 'a', 'ab', '', '7', '2026-03-14', true, false, null);
const bound: fc.Arbitrary<object> = fc.oneof(
  fc.constantFrom({ pattern: '^a' }, { minLength: 2 }, { maxLength: 1 }, { format: 'email' }),
  fc.constantFrom({ minimum: 2 }, { maximum: 3 }, { exclusiveMinimum: 2 }, { exclusiveMaximum: 3 }, { multipleOf: 2 }),
  boundValue.map((value) => ({ const: value })),
  fc.uniqueArray(boundValue, { minLength: 1, maxLength: 4 }).map((some) => ({ enum: some })),
);
const boundWithin: fc.Arbitrary<object> = fc.oneof(
  bound,
  bound.map((inner) => ({ not: inner })),
  fc.tuple(bound, bound, bound).map(([one, then, other]) => ({ if: one, then, else: other })),
  fc.tuple(fc.constantFrom('anyOf', 'oneOf', 'allOf'), bound, bound).map(([name, ...some]) => ({ [name]: some })),
);

test('a value of a write has a fault exactly if JSON Schema refuses it, whatever keywords bound its field', (t) => {
  const installations = loadResources('').find(({ name }) => name === 'installaties') as Resource;
  const types = fc.constantFrom<Field['type'][]>(
    'uuid',
    'bigint',
    'text',
    'enum',
    'integer',
    'number',
    'boolean',
    'date',
  );
  const values = fc.array(boundValue, { minLength: 1, maxLength: 9 });
  const counts = { refused: 0, taken: 0 };
  const property = fc.property(types, boundWithin, bound, fc.boolean(), values, (type, one, other, nullable, some) => {
    const member = { column: 'c', type, nullable, description: '', write: { schema: { ...one, ...other } } } as Field;
    const ajv = new Ajv2020({ strict: false });
    formats.default(ajv);
    const accepts = ajv.compile(makeWriteSchema(member));
    const { patch } = compileBodyChecks({ ...installations, fields: { member } });
    for (const value of some) {
      t.is(patch({ member: value }).length > 0, !accepts(value), JSON.stringify([type, nullable, one, other, value]));
      counts[accepts(value) ? 'taken' : 'refused']++;
    }
  });
  fc.assert(property, { numRuns: 300 });
  t.true(Math.min(counts.refused, counts.taken) > 50, JSON.stringify(counts));
  const member: Field = {
    column: 'c',
    type: 'integer',
    description: '',
    write: { schema: { enum: [1, 2, 3] } },
  } as Field;
  const { patch } = compileBodyChecks({ ...installations, fields: { member } });
  t.deepEqual(patch({ member: 7 }), [{ pointer: '/member', code: 'invalid', detail: 'This must be one of: 1, 2, 3.' }]);
  for (const value of ['7', null, 2.5]) t.is(patch({ member: value }).length, 1, 'the wrong type is the only fault');
});

test('a change of a definition counts as a change of what is shown, whatever its members are named, unless it is prose', (t) => {
  for (const name of ['example', 'description', 'fields', 'schema']) {
    const inner = field('c', 'json', { fields: { [name]: { type: 'text' } } });
    const parts = { description: 'A.', group: { [name]: inner } };
    const base = {
      ...items,
      auditFields: { [name]: 'text' },
      fields: { ...items.fields, [name]: field('b', 'text'), parts },
    };
    const shownBy = (path: string, value: unknown): string => {
      const [resource] = load({ 'a.json': altered(base, path, value), 'owners.json': owners }) as [Resource];
      return compileResource(resource, projectionOptions, () => {}).projectionHash;
    };
    const before = shownBy('description', 'B.');
    t.not(shownBy(`auditFields/${name}`, 'integer'), before, name);
    t.is(shownBy('fields/parts/description', 'B.'), before, name);
    const group = `parts/group/${name}`;
    const examples = { [name]: 'b', [group]: { [name]: 'b' }, [`${group}/fields/${name}`]: 'b' };
    for (const [at, example] of Object.entries(examples)) {
      t.is(shownBy(`fields/${at}/description`, 'B.'), before, at);
      t.is(shownBy(`fields/${at}/example`, example), before, at);
      t.not(shownBy(`fields/${at}/nullable`, true), before, at);
    }
  }
});
