import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import fc from 'fast-check';
import pg from 'pg';
import { shortenName } from '../../pull/src/names.js';
import { duckdbTexts, exportedTexts, formats, postgresTexts, type TextRow } from '../support/pull/copied-values.js';
import { pullInProcess } from '../support/pull/copy.js';
import { record, syncServer } from '../support/pull/sync-server.js';
import { shared } from '../support/shared.js';

// A copy and its files are compared with the answers of the API, value by value, for any document and any records.

const folder = mkdtempSync(join(tmpdir(), 'pull-values-'));
const tokenFile = join(folder, 'token');
test.before(() => writeFileSync(tokenFile, 'a-token-of-a-test'));
test.after.always(() => rmSync(folder, { recursive: true }));

type Kind = 'text' | 'timestamp' | 'date' | 'integer' | 'number' | 'boolean' | 'json';

const schemas: Readonly<Record<Kind, object>> = {
  text: { type: 'string' },
  timestamp: { type: 'string', format: 'date-time' },
  date: { type: 'string', format: 'date' },
  integer: { type: 'integer' },
  number: { type: 'number' },
  boolean: { type: 'boolean' },
  json: {},
};

const digits = (min: number, max: number): fc.Arbitrary<string> =>
  fc.string({ unit: fc.constantFrom(...'0123456789'), minLength: min, maxLength: max });
const decimal = fc
  .tuple(fc.boolean(), digits(0, 40), digits(0, 30), fc.option(fc.integer({ min: -40, max: 40 })))
  .map(
    ([isMinus, whole, part, exponent]) =>
      `${isMinus ? '-' : ''}${whole.replace(/^0+/, '') || '0'}${part === '' ? '' : `.${part}`}${exponent === null ? '' : `e${exponent}`}`,
  );
const double = fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => JSON.stringify(value));
const longDoubles = fc.constantFrom('0.30000000000000004', '19.989999999999998', '1.7976931348623155e+308');
const number = fc.oneof(decimal, double, longDoubles);
const oddText = fc.constantFrom(
  '',
  'null',
  '007',
  '=1+1',
  '-5',
  '+31 6',
  '@x',
  'a;b',
  'a,b',
  'say "hi"',
  'x\r\ny',
  '\u2028',
  '😀',
  '\\',
  '1,5',
  '\t',
  ' 7',
  '\ufeff',
  '\ufeffx',
  '\ufeff=1',
);
const text = fc.oneof(
  oddText,
  fc.string({ unit: 'grapheme' }).filter((value) => !value.includes('\0')),
);
const day = fc.date({ min: new Date('0001-01-02'), max: new Date('9998-12-30'), noInvalidDate: true });

const spaced = (json: string): fc.Arbitrary<string> =>
  fc.constantFrom(json, json.replace(/^\{"/, '{\r\n "'), json.replace(/^\[/, '[ '));
const freeJson = fc.oneof(
  fc
    .json()
    .filter((json) => json !== 'null' && !/\\u0000|\\ud[89a-f]/i.test(json))
    .chain(spaced),
  number.map((value) => `{"amount":${value},"x":[${value}],"naam_1":1,"naam_1":2}`),
);

const values: Readonly<Record<Kind, fc.Arbitrary<string>>> = {
  text: text.map((value) => JSON.stringify(value)),
  timestamp: day.map((value) => JSON.stringify(value.toISOString())),
  date: day.map((value) => JSON.stringify(value.toISOString().slice(0, 10))),
  integer: fc.bigInt({ min: -(10n ** 30n), max: 10n ** 30n }).map(String),
  number,
  boolean: fc.constantFrom('true', 'false'),
  json: freeJson,
};

const misfit = fc.constantFrom('"soon"', '12.5', '{"a":1}', '[1]', '"2026-01-01T10:00:00.1234567Z"', 'true');

const names = fc.constantFrom(
  ...[
    'naam',
    'Naam',
    'userid',
    'userId',
    'user_id',
    '__proto__',
    'constructor',
    'toString',
    'hasOwnProperty',
    '(a|a)*$',
    'a(',
    "it's",
    'a"b',
    'sync_version',
    'page',
    'é',
    'order',
    '$1',
    'a.b',
    'x'.repeat(80),
  ],
);

interface Member {
  readonly name: string;
  readonly kind: Kind;
  readonly isGrouped: boolean;
}
const member = fc.record<Member>({
  name: names,
  kind: fc.constantFrom(...(Object.keys(schemas) as Kind[])),
  isGrouped: fc.boolean(),
});

/** A document with one resource, and its records: the values of each member, and those of the elements of a part. */
const scenario = fc
  .record({
    name: fc.constantFrom('work-orders', 'page', 'lines', 'new_page', 'pull_state', 'Orders', 'x'.repeat(70)),
    members: fc.uniqueArray(member, { selector: ({ name }) => name, minLength: 1, maxLength: 10 }),
    elements: fc.uniqueArray(member, { selector: ({ name }) => name, minLength: 1, maxLength: 4 }),
  })
  .chain(({ name, members, elements }) => {
    const rowOf = (some: readonly Member[]) =>
      fc.tuple(
        ...some.map(({ kind }) =>
          fc.oneof(
            { arbitrary: values[kind], weight: 60 },
            { arbitrary: fc.constant('null'), weight: 10 },
            { arbitrary: misfit, weight: kind === 'json' ? 0 : 1 },
          ),
        ),
      );
    const recordsOf = fc.array(fc.tuple(rowOf(members), fc.array(rowOf(elements), { maxLength: 3 })), {
      minLength: 1,
      maxLength: 12,
    });
    return fc.record({
      name: fc.constant(name),
      members: fc.constant(members),
      elements: fc.constant(elements),
      records: recordsOf,
    });
  });

type Scenario = typeof scenario extends fc.Arbitrary<infer S> ? S : never;

const object = (pairs: readonly (readonly [string, string])[]): string =>
  `{${pairs.map(([name, json]) => `${JSON.stringify(name)}:${json}`).join(',')}}`;
const schemaOf = (pairs: readonly (readonly [string, object])[]): object => ({
  type: 'object',
  required: pairs.map(([name]) => name),
  properties: Object.fromEntries(pairs),
});

/** The copy has a number of at most 15 digits where the gateway has a longer fraction. */
function isNearly(copied: string, json: string): boolean {
  const [one, other] = [Number(copied), Number(json)];
  const digits = copied.replace(/^-?[0.]*|\.|-/g, '').replace(/0+$/, '');
  return digits.length <= 15 && !/^-?\d{16,}$/.test(json) && Math.abs(one - other) <= Math.abs(other) * 1e-14;
}

function isSame(copied: string | null | undefined, json: string, isExcel = false): boolean {
  if (json === 'null') return copied === null;
  if (typeof copied !== 'string') return false;
  if (!json.startsWith('"')) {
    if (isExcel && isNearly(copied, json)) return true;
    if (/^-?\d/.test(json)) return plain(copied) === plain(json);
    return copied === json || copied === json.replace(/[\r\n]+/g, ' ');
  }
  const value = JSON.parse(json) as string;
  const moment = copied.replace(/^(\d{4}-\d\d-\d\d) /, '$1T').replace(/([+]00)$/, 'Z');
  if (isExcel && /T.*Z$/.test(value) && copied === value.replace('T', ' ').replace(/(\.\d+)?Z$/, '')) return true;
  return copied === value || copied === json || (/T.*Z$/.test(moment) && Date.parse(moment) === Date.parse(value));
}

function differencesOf(where: string, found: readonly TextRow[], wanted: readonly TextRow[]): string[] {
  return [
    ...(found.length === wanted.length ? [] : [`${where}: ${found.length} rows of ${wanted.length}`]),
    ...wanted.flatMap((row, i) =>
      row.flatMap((json, k) =>
        isSame(found[i]?.[k], json as string, where.includes('excel'))
          ? []
          : [`${where} ${i},${k}: ${JSON.stringify(found[i]?.[k])} for ${json}`],
      ),
    ),
  ];
}

function plain(text: string): string {
  const [, sign = '', whole = '', part = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text) ?? [];
  if (whole === '') return text;
  const all = `${whole}${part}`.replace(/^0+/, '');
  const kept = all.replace(/0+$/, '');
  return kept === '' ? '0' : `${sign}${kept}e${Number(exponent) - part.length + all.length - kept.length}`;
}

/** Makes the schema and the records of a scenario, and the rows that a copy must have. */
function served(members: readonly Member[], elements: readonly Member[], records: Scenario['records']) {
  const grouped = members.filter(({ isGrouped }) => isGrouped);
  const alone = members.filter(({ isGrouped }) => !isGrouped);
  const schema = schemaOf([
    ['id', schemas.text],
    ...alone.map((each) => [each.name, schemas[each.kind]] as const),
    ['groep', schemaOf(grouped.map((each) => [each.name, schemas[each.kind]] as const))],
    ['delen', { type: 'array', items: schemaOf(elements.map((each) => [each.name, schemas[each.kind]] as const)) }],
  ]);
  const expected: TextRow[] = [];
  const expectedParts: TextRow[] = [];
  const texts = records.map(([row, parts], i): [string, string] => {
    const id = `r${String(i).padStart(3, '0')}`;
    const pairsOf = (some: readonly Member[]) =>
      some.map((each) => [each.name, row[members.indexOf(each)] as string] as const);
    expected.push([JSON.stringify(id), ...[...pairsOf(alone), ...pairsOf(grouped)].map(([, json]) => json)]);
    for (const [position, part] of parts.entries())
      expectedParts.push([JSON.stringify(id), String(position + 1), ...part]);
    const all = [
      ...pairsOf(alone),
      ['groep', object(pairsOf(grouped))] as const,
      [
        'delen',
        `[${parts.map((part) => object(elements.map((each, k) => [each.name, part[k] as string]))).join(',')}]`,
      ] as const,
    ];
    return [id, record(id, object(all).slice(1, -1))];
  });
  return { schema, expected, expectedParts, texts };
}

test('every value of a copy and of each export is the value that the API sent, whatever document and records are', async (t) => {
  const admin = new pg.Client(urlOf('postgres'));
  await admin.connect();
  t.teardown(() => admin.end());
  let run = 0;
  await fc
    .assert(
      fc.asyncProperty(scenario, async ({ name, members, elements, records }) => {
        const at = join(folder, String(++run));
        const database = `values_${process.pid}_${run}`;
        const { schema, expected, expectedParts, texts } = served(members, elements, records);
        const server = await syncServer({ [name]: { schema, records: new Map(texts) } });
        await admin.query(`create database ${database}`);
        try {
          const url = urlOf(database);
          const table = tableOf(name);
          const part = partOf(table);
          const wrong: string[] = [];
          const compare = (where: string, found: readonly TextRow[], wanted: readonly TextRow[]): unknown =>
            wrong.push(...differencesOf(where, found, wanted));
          for (const to of [join(at, 'copy.duckdb'), url]) {
            for (const format of formats) {
              const exportTo = join(at, `${format}-${to === url}`);
              const args = ['--base', server.base, '--token-file', tokenFile, '--to', to, '--export', exportTo];
              const ran = await pullInProcess([...args, '--format', format, ...(format === 'csv' ? ['--verify'] : [])]);
              if (ran.code !== 0) wrong.push(ran.stderr);
              compare(`${to} ${format}`, await exportedTexts(exportTo, table, format), expected);
              compare(`${to} ${format} parts`, await exportedTexts(exportTo, part, format), expectedParts);
            }
            const texts =
              to === url
                ? (each: string) => postgresTexts(url, each)
                : (each: string) => duckdbTexts(to, `main."${each}"`);
            compare(to, await texts(table), expected);
            compare(`${to} parts`, await texts(part), expectedParts);
          }
          if (wrong.length > 0) throw new Error(wrong.slice(0, 10).join('\n'));
        } finally {
          server.close();
          await admin.query(`drop database ${database} with (force)`);
          rmSync(at, { recursive: true, force: true });
        }
      }),
      { numRuns: Number(process.env.PULL_VALUES_RUNS ?? 10), endOnFailure: true },
    )
    .catch((error: Error) => {
      throw new Error(`${(error.cause as Error | undefined)?.message}\n${error.message.slice(0, 3000)}`);
    });
  t.pass();
});

const urlOf = (database: string): string => Object.assign(new URL(shared.primary), { pathname: `/${database}` }).href;

const tables: Readonly<Record<string, string>> = {
  'work-orders': 'work_orders',
  pull_state: 'pull_state_2',
  Orders: 'orders',
};
const tableOf = (name: string): string => tables[name] ?? (name.length > 63 ? shortenName(name) : name);
const partOf = (table: string): string => shortenName(`${table}_delen`);
