import test from 'ava';
import fc from 'fast-check';
import { getResourceName, prepareSql, type Statement } from '../../src/postgres/statement.js';
import { marksAloneStatement } from '../../src/postgres/wal-position.js';
import type { Resource } from '../../src/resource/definition/resource.js';
import { nameWalled } from '../../src/resource/definition/resource.js';
import { compileStatements } from '../../src/resource/statements/statements.js';
import { compileSyncStatements } from '../../src/resource/statements/sync-statements.js';
import { compileWriteStatements } from '../../src/resource/statements/write-statements.js';
import { field, items, load, owners } from '../support/definitions.js';

/** Names that are words of statements, that join to each other, or that are long. */
const word = fc.oneof(
  fc.constantFrom(...'desc all after sync hashed rows keys only versioned detail a ab b'.split(' ')),
  fc.stringMatching(/^[a-z][a-zA-Z]{0,59}$/),
);
const words = (maxLength: number): fc.Arbitrary<string[]> => fc.uniqueArray(word, { maxLength });
const isName = (name: string): boolean =>
  !['id', 'ids', 'owner', 'page', 'total', 'order', 'fields', 'cursor', 'perPage'].includes(name);

interface Drawn {
  readonly filters: readonly string[];
  readonly parts: readonly string[];
  readonly nearlyUnique: boolean;
}
const drawn: fc.Arbitrary<Drawn> = fc.record({
  filters: words(4).map((names) => names.filter(isName)),
  parts: words(3),
  nearlyUnique: fc.boolean(),
});

function definition(name: string, { filters, parts, nearlyUnique }: Drawn): object {
  const filter = (_: string, i: number) => ({
    ...{ column: `c${i}`, kind: 'equals', description: 'A.' },
    ...(i === 0 && nearlyUnique && { nearlyUnique }),
  });
  return {
    ...items,
    ...{ name, record: `${name}Item`, view: `records.${name}`, auditEntity: name },
    write: { view: `records.${name}_write`, audit: false },
    filters: Object.fromEntries(filters.map((each, i) => [each, filter(each, i)])),
    sync: { parts: Object.fromEntries(parts.map((part, i) => [part, { view: `records.${name}_part_${i}` }])) },
    fields: { ...items.fields, ...Object.fromEntries(filters.map((_, i) => [`m${i}`, field(`c${i}`, 'text')])) },
  };
}

function statementsIn(value: unknown): Statement[] {
  if (typeof value !== 'object' || value === null) return [];
  if ('text' in value && 'parameters' in value) return [value as Statement];
  return Object.values(value).flatMap(statementsIn);
}

/** Statements of some combinations of filters, directions and members, of lists and passes, of sync and of writes. */
function statementsOf(resource: Resource): Statement[] {
  const names = Object.keys(resource.filters);
  const subsets: string[][] = [[]];
  for (const name of names) subsets.push(...subsets.map((set) => [...set, name]));
  const cuts = [
    null,
    { fields: ['id'], columns: ['id', 'made_at'] },
    { fields: ['state'], columns: ['state', 'id', 'made_at'] },
  ];
  return [resource, { ...resource, versionSeed: 1n }].flatMap((each) => {
    const { list, detail } = compileStatements(each);
    const lists = subsets.flatMap((set) =>
      cuts.flatMap((cut) => [list(set, 'asc', cut), list(set, 'desc', cut)].flatMap(statementsIn)),
    );
    const writes = each.write && compileWriteStatements(each as Parameters<typeof compileWriteStatements>[0]);
    return [...lists, ...statementsIn([detail, compileSyncStatements(each), writes])];
  });
}

test('no two texts of statements share a name, whatever the definitions are called, and PostgreSQL keeps every name', (t) => {
  fc.assert(
    fc.property(
      fc.uniqueArray(fc.stringMatching(/^[a-z]{1,8}$/).filter(isName), { minLength: 1, maxLength: 2 }),
      drawn,
      drawn,
      (names, ...all) => {
        const files = names
          .filter((name) => name !== 'owners')
          .map((name, i) => [`${name}.json`, definition(name, all[i] as Drawn)]);
        const texts = new Map<string, string>();
        for (const { name, text, inTableOrder } of load({
          'owners.json': owners,
          ...Object.fromEntries(files),
        }).flatMap(statementsOf)) {
          const meaning = `${inTableOrder} ${text}`;
          t.true(Buffer.byteLength(name) <= 63, name);
          t.is(texts.get(name) ?? meaning, meaning, name);
          texts.set(name, meaning);
        }
        t.true(texts.size > 50);
      },
    ),
    { numRuns: 20, includeErrorInReport: true },
  );
});

test('the name of a statement depends on its text and its order of reading, not on what it is called', (t) => {
  fc.assert(
    fc.property(fc.string(), fc.string(), fc.string({ unit: 'binary', maxLength: 80 }), (one, other, label) => {
      t.is(prepareSql(label, one).name === prepareSql(label, other).name, one === other);
      t.not(prepareSql(label, one).name, prepareSql(label, one, [], true).name);
      t.regex(prepareSql(label, one).name, /^[\x21-\x7e]{1,63}$/);
    }),
  );
});

test('a resource that is called history does not share its locks with the sync of all others', (t) => {
  t.notRegex(
    getResourceName(marksAloneStatement),
    /^[a-z][a-z0-9-]{0,39}$/,
    'a name that config/resource.schema.json takes',
  );
});

test('PostgreSQL keeps the whole name of each view, and no two views share one', (t) => {
  const names = fc.stringMatching(/^[a-z_][a-z0-9_]{0,62}$/);
  fc.assert(
    fc.property(names, names, fc.constantFrom('', '_asc', '_by_id', '_write'), (one, other, suffix) => {
      const [view, second] = [one, other].map((name) => nameWalled(`records.${name}`, suffix).replace('gateway.', ''));
      t.true(Buffer.byteLength(view as string) <= 63, view);
      t.is(view === second, one === other);
    }),
    { examples: [[`${'x'.repeat(62)}a`, `${'x'.repeat(62)}b`, '_asc']] },
  );
});
