import test from 'ava';
import fc from 'fast-check';
import { viewWords } from '../../src/postgres/row.js';
import { makeShapeSchema } from '../../src/resource/definition/record-schema.js';
import type { JsonShape } from '../../src/resource/definition/resource.js';
import { JsonBytes } from '../../src/resource/projection/json-bytes.js';
import { makeShapeAppender } from '../../src/resource/serializer/shapes.js';

function written(part: JsonShape, text: string, around = ['x', ','] as readonly [string, string]): string {
  const bytes = Buffer.from(around[0] + text + around[1]);
  const start = Buffer.byteLength(around[0]);
  const json = new JsonBytes(1);
  makeShapeAppender(part)({ bytes, words: viewWords(bytes) }, start, json);
  return json.toString();
}

const list = (type: JsonShape['type']): JsonShape => ({ type: 'json', items: { type } });

// As to_json prints them, in a session with the time zone UTC.
const values: readonly (readonly [type: JsonShape['type'], printed: string, shown: string])[] = [
  ['date', '"2026-03-29"', '"2026-03-29"'],
  ['date', '"0001-01-01"', '"0001-01-01"'],
  ['date', '"infinity"', 'null'],
  ['date', '"-infinity"', 'null'],
  ['date', '"0044-03-15 BC"', 'null'],
  ['date', '"20226-01-05"', 'null'],
  ['date', '"2026-03-29T00:00:00"', 'null'],
  ['date', '"1234567890"', 'null'],
  ['date', '20260329', 'null'],
  ['timestamp', '"2026-03-29T01:59:59.123456+00:00"', '"2026-03-29T01:59:59.123Z"'],
  ['timestamp', '"2026-03-29T01:59:59+00:00"', '"2026-03-29T01:59:59.000Z"'],
  ['timestamp', '"2026-03-29T01:59:59.5Z"', '"2026-03-29T01:59:59.500Z"'],
  ['timestamp', '"2026-03-29 01:59:59.5+00"', '"2026-03-29T01:59:59.500Z"'],
  ['timestamp', '"2026-03-29T01:59:59.999999"', '"2026-03-29T01:59:59.999Z"'],
  ['timestamp', '"2026-03-29T01:59:59.999999+02:00"', '"2026-03-28T23:59:59.999Z"'],
  ['timestamp', '"1900-01-01T00:00:00+00:19:32"', '"1899-12-31T23:40:28.000Z"'],
  ['timestamp', '"2026-03-28T20:29:59.25-03:30"', '"2026-03-28T23:59:59.250Z"'],
  ['timestamp', '"infinity"', 'null'],
  ['timestamp', '"0044-03-15T00:00:00+00:00 BC"', 'null'],
  ['timestamp', '"20226-01-05T00:00:00+00:00"', 'null'],
  ['timestamp', '"9999-12-31T23:59:59-02:00"', 'null'],
  ['timestamp', '"0001-01-01T00:00:00+01:00"', 'null'],
  ['timestamp', '"2026-03-29"', 'null'],
  ['timestamp', '1774742400', 'null'],
  ['number', '12.50', '12.50'],
  ['number', '-1e+30', '-1e+30'],
  ['number', '"NaN"', 'null'],
  ['number', '"-Infinity"', 'null'],
  ['number', 'true', 'null'],
  ['integer', '9007199254740993', '9007199254740993'],
  ['boolean', 'true', 'true'],
  ['boolean', 'false', 'false'],
  ['boolean', '"t"', 'null'],
  ['bigint', '9007199254740993', '"9007199254740993"'],
  ['bigint', '"5"', '"5"'],
  ['uuid', '"5f0d7c1e-8a43-4c52-9b1d-3f6e2a9c7d10"', '"5f0d7c1e-8a43-4c52-9b1d-3f6e2a9c7d10"'],
  ['text', '"a\\"b"', '"a\\"b"'],
  ['text', '-1.5', '"-1.5"'],
  ['text', '{"a": 1}', 'null'],
  ['text', '[1]', 'null'],
];

for (const [type, printed, shown] of values) {
  test(`${printed} of type ${type} within JSON is ${shown}`, (t) => {
    t.is(written(list(type), `[${printed}, \n ${printed}]`), `[${shown},${shown}]`);
    t.is(written({ type: 'json', fields: { a: { type } } }, `{"b":1 , "a" : ${printed}}`), `{"a":${shown}}`);
    t.is(written({ type }, printed), shown);
  });
}

const hours: JsonShape = {
  type: 'json',
  items: {
    type: 'json',
    fields: {
      id: { type: 'bigint' },
      staffId: { type: 'bigint', column: 'staff_id', references: 'staff' },
      at: { type: 'timestamp' },
      spans: { type: 'json', column: 'time spans', items: { type: 'json', fields: { from: { type: 'date' } } } },
      place: { type: 'json', fields: { town: { type: 'text', nullable: true } } },
    },
  },
};

test('the rows of a list have the fields of the definition, in its order and by its names, and no others', (t) => {
  const stored = `[{"staff_id": 5, "id": 1, "secret": {"id": 9}, "at": "2026-03-29T01:59:59+00:00",
    "time spans": [{"from": "infinity"}, null, 3], "place": {"town": "}]\\"", "id": 8}}, {"id":2,"place":null}, null, "x"]`;
  const empty = '"staffId":null,"at":null,"spans":null,"place":null';
  t.is(
    written(hours, stored),
    `[{"id":"1","staffId":"5","at":"2026-03-29T01:59:59.000Z","spans":[{"from":null},null,null],"place":{"town":"}]\\""}},{"id":"2",${empty}},null,null]`,
  );
  for (const other of ['{}', '3', '"x"']) t.is(written(hours, other), 'null');
  t.is(written(hours, '[ ]'), '[]');
});

test('the schema of a list says what its rows are', (t) => {
  const { items } = makeShapeSchema(hours) as { items: { required: string[]; properties: Record<string, unknown> } };
  t.deepEqual(items.required, ['id', 'staffId', 'at', 'spans', 'place']);
  t.deepEqual(items.properties.staffId, { type: 'string', minLength: 1, 'x-references': 'staff' });
  t.like(items.properties.at as object, { type: ['string', 'null'], format: 'date-time' });
  t.like(items.properties.spans as object, { type: 'array', items: { type: 'object', required: ['from'] } });
});

const show = ['/druk', '/druk/hoog', '/meting/waarde', '/lijst', '/a~1b', '/~0', '/é"'];
const shown: readonly (readonly [stored: string, shown: string])[] = [
  ['{"druk": 4.20, "klant": "Jansen"}', '{"druk":4.20}'],
  ['{"druk": {"hoog": 1.50, "laag": 2}, "x": {"druk": 1}}', '{"druk":{"hoog":1.50}}'],
  ['{"meting": {"waarde": {"punten": [[1, 2]]}}}', '{"meting":{}}'],
  ['{"meting": 3}', '{}'],
  ['[{"meting": [{"waarde": 1}, {"waarde": 2, "naam": "x"}, "los"]}, 5]', '[{"meting":[{"waarde":1},{"waarde":2}]}]'],
  ['{"lijst": [true, null, [1, {"a": 1}], "é"]}', '{"lijst":[true,null,[1],"é"]}'],
  ['{"a/b": 1, "~": 2, "\\u00e9\\"": 3, "e": 4}', '{"a/b":1,"~":2,"\\u00e9\\"":3}'],
  ['{"\\u0064ruk": "x"}', '{"\\u0064ruk":"x"}'],
  ['"tekst"', 'null'],
  ['{}', '{}'],
];
for (const [stored, wanted] of shown) {
  test(`of free JSON the listed members are shown: ${stored}`, (t) => {
    t.is(written({ type: 'json', show }, stored), wanted);
    t.is(written({ type: 'json', items: { type: 'json', show } }, `[${stored}]`), `[${wanted}]`);
  });
}

test('the empty pointer shows a value that is no object, also in lists; without it and without members nothing is shown', (t) => {
  const forms = ['42', '"tekst"', '["rood", 2, {"a": 1}]', '{"a": 1, "b": 2}', 'null'];
  const shownBy = (show: readonly string[]): string[] => forms.map((form) => written({ type: 'json', show }, form));
  t.deepEqual(shownBy(['', '/a']), ['42', '"tekst"', '["rood",2,{"a":1}]', '{"a":1}', 'null']);
  t.deepEqual(shownBy(['']), ['42', '"tekst"', '["rood",2]', 'null', 'null']);
  t.deepEqual(shownBy(['/a']), ['null', 'null', '[{"a":1}]', '{"a":1}', 'null']);
  t.deepEqual(
    forms.map((form) => written({ type: 'json' }, form)),
    ['null', 'null', '[]', 'null', 'null'],
  );
});

/** Applies `show` to parsed values; undefined if nothing is shown. */
function listed(value: unknown, pointers: readonly string[]): unknown {
  if (pointers.length === 0) return undefined;
  if (Array.isArray(value)) return value.map((each) => listed(each, pointers)).filter((each) => each !== undefined);
  if (typeof value !== 'object' || value === null) return pointers.includes('') ? value : undefined;
  const inner = (name: string): string[] =>
    pointers.flatMap((each) =>
      each === `/${name}` || each.startsWith(`/${name}/`) ? [each.slice(name.length + 1)] : [],
    );
  if (!pointers.some((each) => each !== '')) return undefined;
  const members = Object.entries(value).map(([name, each]) => [name, listed(each, inner(name))] as const);
  return Object.fromEntries(members.filter(([, each]) => each !== undefined));
}

const name = fc.constantFrom('a', 'b', 'c');
const scalar = fc.oneof(fc.integer(), fc.string({ maxLength: 3 }), fc.boolean());
const { free } = fc.letrec((tie) => ({
  free: fc.oneof(
    { depthSize: 'medium' },
    scalar,
    fc.array(tie('free'), { maxLength: 3 }),
    fc.dictionary(name, tie('free'), { maxKeys: 3 }),
  ),
}));
const pointers = fc.uniqueArray(
  fc.array(name, { maxLength: 3 }).map((names) => names.map((each) => `/${each}`).join('')),
  { minLength: 1, maxLength: 5 },
);

test('nothing is shown of free JSON but the listed members', (t) => {
  fc.assert(
    fc.property(free, pointers, fc.constantFrom('', ' '), (value, list, space) => {
      const stored = JSON.stringify(value, null, space);
      const wanted = listed(value, list);
      t.deepEqual(JSON.parse(written({ type: 'json', show: list }, stored)), wanted === undefined ? null : wanted);
    }),
    { numRuns: 2000 },
  );
});
