import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import fc from 'fast-check';
import { newAjv } from '../../src/definition/ajv.js';
import { fits, fitsWithDefaults, isPlainSchema } from '../../src/definition/plain-schema.js';
import { projectRoot } from '../../src/paths.js';
import { altered } from '../support/definitions.js';

const json = (path: string): object => JSON.parse(readFileSync(join(projectRoot, path), 'utf8'));
const definitions = ['config/resources', 'config/apps/second/resources'].flatMap((folder) =>
  readdirSync(join(projectRoot, folder)).map((name) => json(`${folder}/${name}`)),
);
const schema = json('config/resource.schema.json');

/** Paths of all values of a definition, as `altered` takes them. */
function pathsIn(value: unknown, path: readonly string[] = []): string[] {
  const own = path.length === 0 || path.some((name) => name.includes('/')) ? [] : [path.join('/')];
  if (typeof value !== 'object' || value === null) return own;
  return [...own, ...Object.entries(value).flatMap(([name, member]) => pathsIn(member, [...path, name]))];
}

const odd = fc.constantFrom<unknown>(
  undefined,
  null,
  true,
  '',
  'id',
  'A b',
  'x'.repeat(400),
  0,
  0.5,
  -1,
  9000,
  [],
  ['id', 'id'],
  {},
  { group: {} },
  { column: 'id' },
);

test('a definition fits the schema exactly when ajv says so, and gets the same defaults', (t) => {
  const ajv = newAjv({ useDefaults: true, strictTypes: false, strictRequired: false });
  const validate = ajv.compile(schema);
  const alteration = fc
    .constantFrom(...definitions)
    .chain((definition) => fc.tuple(fc.constant(definition), fc.constantFrom(...pathsIn(definition)), odd));
  const seen = { fit: 0, unfit: 0 };
  fc.assert(
    fc.property(alteration, ([definition, path, value]) => {
      const text = JSON.stringify(altered(definition, path, value));
      const [ours, theirs] = [JSON.parse(text), JSON.parse(text)];
      const isFit = fitsWithDefaults(schema, ours);
      t.is(isFit, validate(theirs), path);
      if (isFit) t.deepEqual(ours, theirs, path);
      seen[isFit ? 'fit' : 'unfit']++;
    }),
    { numRuns: 1000 },
  );
  t.true(seen.fit > 50 && seen.unfit > 50);
});

/** Schemas of fields: right and wrong limits of each keyword, and keywords that only ajv understands. */
const limits: Readonly<Record<string, readonly unknown[]>> = {
  type: ['string', 'integer', 'number', 'object', 'array', ['string', 'null'], ['null', 'null'], 'strnig', []],
  description: ['A.', 1],
  examples: [['a'], 'a'],
  const: ['a', null],
  minimum: [1, '1'],
  maximum: [3, null],
  minLength: [1, -1, 0.5],
  maxLength: [2, '2'],
  minItems: [1, -1],
  maxItems: [1, 1.5],
  pattern: ['^a', '(', 'a{,1}', 7],
  format: ['date', 'date-time', 'int64', 'sort-of-date'],
  properties: [{ a: { type: 'string' } }, { a: 1 }, []],
  required: [['a'], ['b'], ['a', 'a'], 'a'],
  additionalProperties: [false, { type: 'integer' }, 1],
  items: [{ type: 'string' }, { typo: 1 }, []],
  anyOf: [[{ type: 'string' }, { minimum: 2 }], [], [{ type: 'no' }]],
  not: [{ type: 'string' }],
  $ref: ['#/x'],
  unknown: [1],
};
const keyword = fc
  .constantFrom(...Object.entries(limits))
  .chain(([name, of]) => fc.constantFrom(...of.map((limit) => [name, limit] as const)));
const value = fc.constantFrom<unknown>(
  '',
  'a',
  'abc',
  '😀😀',
  '2026-02-30',
  '2026-02-28',
  '2026-03-29T01:59:59Z',
  0,
  1,
  2.5,
  4,
  null,
  true,
  [],
  ['a'],
  [1, 2],
  {},
  { a: 'x' },
  { a: 1 },
  { b: 1 },
);

test('a schema that is plain compiles with ajv, which judges every value alike', (t) => {
  let plain = 0;
  fc.assert(
    fc.property(
      fc.array(keyword, { minLength: 1, maxLength: 4 }),
      fc.array(value, { minLength: 1 }),
      (parts, values) => {
        const made = Object.fromEntries(parts);
        if (!isPlainSchema(made)) return;
        plain++;
        const validate = newAjv({ strictTypes: false, strict: true, meta: true }).compile(made);
        for (const each of values) t.is(fits(made, each), validate(each), JSON.stringify([made, each]));
      },
    ),
    { numRuns: 400 },
  );
  t.true(plain > 50);
});
