import test from 'ava';
import fc from 'fast-check';
import { bodyDepthMax, parseStrictJson, type StrictJson } from '../../src/write/strict-json.js';
import { malformed, nested } from '../support/malformed-json.js';

const parse = (text: string | Buffer, depthMax = bodyDepthMax): StrictJson =>
  parseStrictJson(Buffer.from(text), depthMax);

test('text that JSON.stringify writes is read as JSON.parse reads it', (t) => {
  const value = fc
    .jsonValue({ maxDepth: 5 })
    .filter((json) => !/__proto__|\\u0000|\\ud[89a-f]/i.test(JSON.stringify(json)));
  fc.assert(
    fc.property(value, fc.constantFrom(0, 1, '\t'), (json, space) => {
      const text = JSON.stringify(json, null, space);
      t.is(JSON.stringify((parse(text) as { value: unknown }).value), JSON.stringify(JSON.parse(text)));
    }),
    { numRuns: 1000 },
  );
});

test('text that JSON.parse refuses is refused, however it was damaged', (t) => {
  fc.assert(
    fc.property(
      fc.json({ maxDepth: 3 }),
      fc.nat(),
      fc.constantFrom('', '"', ',', '}', '\u0001', '0', '-', 'e'),
      (json, at, by) => {
        const damaged = json.slice(0, at % (json.length + 1)) + by + json.slice((at % (json.length + 1)) + 1);
        try {
          JSON.parse(damaged);
        } catch {
          t.true('faults' in parse(damaged), damaged);
        }
      },
    ),
    { numRuns: 2000 },
  );
});

test('every malformed body has its faults, each with its place', (t) => {
  for (const [what, body, ...faults] of malformed) {
    const read = parse(body);
    t.true('faults' in read, what);
    const given = 'faults' in read ? read.faults : [];
    t.deepEqual(
      given.map((fault) => `${'pointer' in fault ? fault.pointer : ''} ${fault.code}`),
      faults,
      what,
    );
    t.true(given.every(({ detail }) => detail.endsWith('.') && detail.length < 100));
  }
});

test('nesting has a bound, objects inherit nothing, and the faults of one body have a bound as well', (t) => {
  t.deepEqual(Object.keys(parse(nested(3), 3)), ['value']);
  t.deepEqual(Object.keys(parse(nested(4), 3)), ['faults']);
  const { value } = parse('{"a":1}') as { value: object };
  t.deepEqual(
    ['a', 'toString', '__proto__'].filter((name) => name in value),
    ['a'],
  );
  t.throws(() => Object.assign(Object.getPrototypeOf(value), { a: 1 }), { instanceOf: TypeError });
  const hostile = parse(`[${'"\\ud800",'.repeat(7000)}0]`) as { faults: object[] };
  t.true(hostile.faults.length > 100 && hostile.faults.length < 1000, String(hostile.faults.length));
});

test('a number is read only if JavaScript can hold all of it', (t) => {
  const numbers: readonly [string, number | null][] = [
    ['1.50', 1.5],
    ['15e-1', 1.5],
    ['-0', -0],
    ['0e9', 0],
    ['1E+2', 100],
    ['9007199254740991', 9007199254740991],
    ['9007199254740993', null],
    ['1e400', null],
    ['1e-400', null],
    ['0.1000000000000000055', null],
  ];
  for (const [literal, number] of numbers) {
    const read = parse(literal);
    if (number === null) t.true('faults' in read, literal);
    else t.is((read as { value: unknown }).value, number, literal);
  }
});
