import type { IncomingMessage } from 'node:http';
import test from 'ava';
import fc from 'fast-check';
import { Problem } from '../../src/base/errors.js';
import type { Statement, WorkspaceId } from '../../src/postgres/statement.js';
import type { CompiledWrite } from '../../src/resource/compiled.js';
import { type FieldType, getType, isInstant, isPrinted } from '../../src/resource/definition/field-types.js';
import { checkTarget } from '../../src/serve/http/request-head.js';
import { ChunkMemory } from '../../src/serve/read/chunk-memory.js';
import { decodeCursor, encodeBytes, type PageEnd } from '../../src/serve/read/cursor.js';
import { composeUrl } from '../../src/serve/read/list.js';
import { type ChunkSource, chunkByIds } from '../../src/serve/read/page.js';
import { PageMemory, type PageSeries } from '../../src/serve/read/page-memory.js';
import { parseQuery } from '../../src/serve/read/parse.js';
import { decodePlace, decodeToken, Pass, type SyncPosition, watchTimeline } from '../../src/serve/sync/pass.js';
import { makeTokenSeal } from '../../src/serve/sync/token-seal.js';
import { makeDiff } from '../../src/serve/write/write.js';

const seal = makeTokenSeal(Buffer.alloc(32).toString('base64'));
const order = (...types: FieldType[]) => types.map((type, i) => ({ column: `c${i}`, type }));

test('every number in a cursor or token, whatever was forged, is one that the statements can take', (t) => {
  const digits = fc.oneof(
    fc.bigInt({ min: 0n, max: 10n ** 22n }).map(String),
    fc.constantFrom('', '0', '-1', '1e3', '999999999999999', '9'.repeat(18), '9'.repeat(19)),
    fc.string({ maxLength: 20 }),
  );
  const isInstant = (ms: number | null): boolean => ms === null || /^\d{4}-/.test(new Date(ms).toISOString());
  const isBigint = (value: bigint): boolean => value >= 0n && value < 2n ** 63n;
  const forged = fc.tuple(digits, digits, digits, digits, digits, digits, digits, fc.constantFrom('0', '1', '7', 'x'));
  fc.assert(
    fc.property(forged, ([system, lsn, xmin, replayed, asOf, sinceXmin, sinceReplayed, section]) => {
      const position = [system, '0000000A', lsn, xmin, replayed];
      const token = decodeToken(seal, 'c', seal.encode('c', position));
      const all = [...position, asOf, sinceXmin, sinceReplayed, section];
      const place = decodePlace(seal, 'c', seal.encode('c', all), () => [order('date', 'text')]);
      const cursor = decodeCursor('c', encodeBytes('c', Buffer.from(replayed)), order('date', 'text'));
      t.true(cursor === undefined || isInstant(cursor.asOfMs));
      for (const each of [token, place?.pass])
        t.true(each === undefined || (isInstant(each.replayedAtMs) && isBigint(each.xmin) && each.lsn < 2n ** 64n));
      t.true(place === undefined || isInstant(place.asOfMs));
      t.true(!place?.since || (isInstant(place.since.replayedAtMs) && isBigint(place.since.xmin)));
    }),
    { numRuns: 2000 },
  );
});

const series = (workspace: string, tokenId = `token of ${workspace}`, context = 'list'): PageSeries => ({
  caller: { workspace: workspace as WorkspaceId, tokenId },
  context,
  perPage: 10,
});
const end = (key: string): PageEnd => ({ key: [key], asOfMs: 1 });
const a = series('a');

test('an end that is not remembered is counted from the nearest one, on either side, or from the beginning', (t) => {
  const memory = new PageMemory(100, 1000, () => 0);
  memory.remember(a, 10, end('ten'), true);
  memory.remember(a, 40, end('forty'), true);
  const pages = [0, 4, 6, 10, 24, 26, 40, 900].map((page) => memory.findNearest(a, page).page);
  t.deepEqual(pages, [0, 0, 10, 10, 10, 40, 40, 40]);
  t.deepEqual(memory.findNearest(a, 900).end, end('forty'));
  t.deepEqual(memory.findNearest(a, 4).end, { key: null, asOfMs: null });
});

test('the end of a page that lacks rows leads to the next page only', (t) => {
  const memory = new PageMemory(100, 1000, () => 0);
  memory.remember(a, 50, end('last'), false);
  t.is(memory.findNearest(a, 50).page, 50);
  t.is(memory.findNearest(a, 51).page, 0);
});

test('another token, list or page size knows nothing of an end', (t) => {
  const memory = new PageMemory(100, 1000, () => 0);
  memory.remember(a, 5, end('five'), true);
  const others = [series('a', 'other'), series('a', undefined, 'other'), { ...a, perPage: 1 }];
  for (const other of others) t.is(memory.findNearest(other, 5).page, 0);
  t.is(memory.findNearest(a, 5).page, 5);
});

test('an end is forgotten after its time', (t) => {
  let nowMs = 0;
  const memory = new PageMemory(100, 1000, () => nowMs);
  memory.remember(a, 5, end('five'), true);
  nowMs = 999;
  t.deepEqual([memory.findNearest(a, 5).page, memory.findNearest(a, 6).page], [5, 5]);
  nowMs = 1000;
  t.deepEqual([memory.findNearest(a, 5).page, memory.findNearest(a, 6).page], [0, 0]);
});

test('while memory is full the lists that were read least recently lose their ends', (t) => {
  const memory = new PageMemory(10, 1000, () => 0);
  const [b, unused] = [series('b'), series('b', 'unused')];
  for (const each of [unused, a]) memory.remember(each, 1, end('one'), true);
  for (let page = 1; page <= 9; page++) memory.remember(b, page, end(String(page)), true);
  t.is(memory.findNearest(unused, 1).page, 0);
  t.is(memory.findNearest(a, 1).page, 1);
  memory.remember(a, 1, end('again'), true);
  t.is(memory.findNearest(b, 1).page, 1, 'an end that is remembered again takes no room');
});

test('a whole number is accepted only in the form in which PostgreSQL prints it', (t) => {
  const accepts = (text: string) => getType('bigint').query?.isValue(text) ?? false;
  const number = fc.oneof(fc.bigInt(-(2n ** 63n), 2n ** 63n - 1n).map(String), fc.stringMatching(/^[-+]?[0-9]{1,3}$/));
  const isOnlyForm = fc.property(number, (text) => {
    t.is(accepts(text), String(BigInt(text.replace('+', ''))) === text, text);
  });
  fc.assert(isOnlyForm, { examples: [['-0'], ['00'], ['+1'], ['0']] });
  for (const text of [`${2n ** 63n}`, `${-(2n ** 63n) - 1n}`, '', '1.0', ' 1']) t.false(accepts(text), text);
});

// The forms of PostgreSQL 8.5.2 ("Date/Time Output", ISO) and the limits of its Table 8.9; other forms would fail in a statement.

const days = ['2026-03-29', '0001-01-01', '9999-12-31', '20226-01-05', '12000-02-29', '0044-03-15 BC', '0005-02-29 BC'];
const noDays = [
  ...['', 'x', '2026-02-30', '0000-01-01', '02026-01-01', '12001-02-29', '0004-02-29 BC', '4714-01-01 BC'],
  ...['+2026-01-01', 'now'],
];

test('every date that PostgreSQL prints is taken for a date of a cursor, and no other text', (t) => {
  for (const text of [...days, '5874897-12-31', 'infinity', '-infinity']) t.true(isPrinted(text, 'date'), text);
  for (const text of [...noDays, '5874898-01-01', '2026-03-29 00:00:00+00']) t.false(isPrinted(text, 'date'), text);
});

test('every moment that PostgreSQL prints is taken for a moment of a cursor, and no other text', (t) => {
  const at = (day: string): string => day.replace(/^([\d-]+)/, '$1 23:59:59.000001+00');
  for (const text of [...days.map(at), '294276-12-31 00:00:00+00', 'infinity', '-infinity'])
    t.true(isPrinted(text, 'timestamp'), text);
  const others = ['294277-01-01 00:00:00+00', '2026-03-29', '2026-03-29 24:00:00+00', '2026-03-29 00:00:00+02'];
  for (const text of [...noDays.map(at), ...others]) t.false(isPrinted(text, 'timestamp'), text);
});

test('a date-time of a filter has up to nine digits of a second, as some clients always send', (t) => {
  for (const text of ['2026-03-14T09:26:53.0000000Z', '2026-03-14T09:26:53.123456789+01:00', '2026-03-14T09:26:53Z'])
    t.true(isInstant(text), text);
  t.false(isInstant('2026-03-14T09:26:53.Z'));
});

function changeOf(type: FieldType, before: string | null, after: string | null): unknown {
  const write = { members: [{ name: 'f', at: 0, type, auditName: 'f' }] };
  const [change] = makeDiff(write as unknown as CompiledWrite, { f: before }, { f: after });
  return change && [change.before, change.after];
}

test('a number that is written in another way is no change', (t) => {
  t.is(changeOf('number', '1.50', '1.5'), undefined);
  t.is(changeOf('number', '100', '1e2'), undefined);
  t.is(changeOf('number', '-0.0', '0'), undefined);
  t.deepEqual(changeOf('number', '1.50', '1.51'), [1.5, 1.51]);
});

test('a number with more digits than JavaScript keeps is another one, and the audit log keeps its digits', (t) => {
  t.deepEqual(changeOf('number', '12345678901234.567891', '12345678901234.568'), [
    '12345678901234.567891',
    12345678901234.568,
  ]);
  t.deepEqual(changeOf('integer', '9007199254740993', '9007199254740992'), ['9007199254740993', 9007199254740992]);
  t.deepEqual(changeOf('number', 'NaN', '0'), ['NaN', 0]);
  t.is(changeOf('number', 'NaN', 'NaN'), undefined);
});

test('a new record without a member that has an inherited name, such as constructor, logs no change of it', (t) => {
  const write = { members: [{ name: 'constructor', at: 0, type: 'text' as const, auditName: 'constructor' }] };
  t.deepEqual(makeDiff(write as unknown as CompiledWrite, null, Object.create(null)), []);
});

const system = '7400000000000000001';
const mark = (xmin: number, lsn: string | null, timeline = '00000001', cluster = system) => [
  String(xmin),
  lsn,
  timeline,
  cluster,
  '1767225600000',
  String(xmin + 5),
];
const history = { systemIdentifier: system, timeline: '00000001' };
const before: SyncPosition = { ...history, lsn: 0x50n, xmin: 100n, replayedAtMs: null };
const judge = (pass: Pass, ...rows: ReturnType<typeof mark>[]): void => pass.accept(rows);

const primaryOn = (timeline: string) => watchTimeline(() => ({ systemIdentifier: system, timeline }));
const primaryUnknown = () => watchTimeline(() => undefined);

test('a pass keeps the oldest transaction of its first snapshot, and the latest position', (t) => {
  const pass = new Pass(null, before, primaryUnknown());
  t.deepEqual(pass.requirement, { replicasOnly: true, replayed: 0x50n });
  judge(pass, mark(120, '0/60'));
  judge(pass, mark(150, '0/80'));
  const { xmin, lsn, replayedAtMs } = pass.position;
  t.deepEqual([xmin, lsn, replayedAtMs], [120n, 0x80n, 1767225600000]);
  t.is(pass.requirement.replayed, 0x80n);
});

test('what still ran before the rows of a statement is not over, and a statement that is refused changes nothing', (t) => {
  const pass = new Pass(null, before, primaryUnknown());
  judge(pass, mark(120, '0/60'), mark(150, '0/80'));
  t.throws(() => judge(pass, mark(160, '0/90'), mark(160, null)), { message: /no replica/ });
  t.deepEqual([pass.position.xmin, pass.position.lsn], [120n, 0x80n]);
});

test('each chunk of changed records looks its own ids up, and every id once', (t) => {
  const ids = Array.from({ length: 10 }, (_, i) => String(i));
  const looked: unknown[] = [];
  for (let chunks: ChunkSource | null = chunkByIds({ label: 'x.rows' } as Statement, ids); chunks !== null; ) {
    const { values, following } = chunks(4);
    looked.push(values.ids);
    chunks = following(false, null);
  }
  t.deepEqual(looked, ['{"0","1","2","3"}', '{"4","5","6","7"}', '{"8","9"}']);
});

const refusals: readonly (readonly [name: string, row: ReturnType<typeof mark>, message: RegExp])[] = [
  ['lacks transactions that the pass counts as over', mark(119, '0/90'), /lacks transactions/],
  ['is behind the pass', mark(130, '0/7F'), /behind the pass/],
  ['is no replica any more', mark(130, null), /no replica/],
];
for (const [name, row, message] of refusals) {
  test(`a statement is repeated elsewhere when its server ${name}`, (t) => {
    const pass = new Pass({ ...before, xmin: 120n, lsn: 0x80n }, null, primaryUnknown());
    const error = t.throws(() => judge(pass, row), { message });
    t.false(error instanceof Problem);
    t.is(pass.position.xmin, 120n);
  });
}

test('a replica behind the end of the pass before is refused, also at the beginning of a pass', (t) => {
  const pass = new Pass(null, before, primaryUnknown());
  t.throws(() => judge(pass, mark(130, '0/4F')), { message: /behind the pass/ });
  judge(pass, mark(99, '0/50'));
  t.is(pass.position.xmin, 99n);
});

test('another history expires the token: a timeline of the replica or of the primary, and another cluster', (t) => {
  const expired = { instanceOf: Problem, message: /another history/ };
  t.throws(() => judge(new Pass(null, before, primaryUnknown()), mark(130, '0/60', '00000002')), expired);
  t.throws(() => judge(new Pass(null, before, primaryOn('00000002')), mark(130, '0/60')), expired);
  const elsewhere = mark(130, '0/60', '00000001', '7400000000000000002');
  t.throws(() => judge(new Pass(null, before, primaryUnknown()), elsewhere), expired);
  t.notThrows(() => judge(new Pass(null, before, primaryOn('00000001')), mark(130, '0/60')));
});

test('a replica that has reached the position in fewer transactions is of another history', (t) => {
  const row = mark(50, '0/60');
  t.throws(() => judge(new Pass(null, before, primaryOn('00000001')), row), { message: /another history/ });
  t.throws(() => judge(new Pass(null, before, primaryOn('00000001')), mark(50, '0/40')), { message: /behind/ });
});

test('no pass begins on a replica that does not show the timeline of the primary', (t) => {
  const begin = () => judge(new Pass(null, null, primaryOn('00000002')), mark(130, '0/60'));
  const error = t.throws(begin, { message: /follows/ });
  t.false(error instanceof Problem);
  t.notThrows(() => judge(new Pass(null, null, primaryOn('00000002')), mark(130, '0/60', '00000002')));
});

test('without a primary the latest timeline of any replica counts, and a replica that shows an earlier one is not read', (t) => {
  const latest = primaryUnknown();
  t.notThrows(() => judge(new Pass(null, null, latest), mark(130, '0/60')));
  t.notThrows(() => judge(new Pass(null, null, latest), mark(130, '0/60', '00000002')));
  t.throws(() => judge(new Pass(null, null, latest), mark(130, '0/60')), { message: /follows/ });
  t.throws(() => judge(new Pass(null, before, latest), mark(130, '0/60')), { message: /another history/ });
});

function used(memory: ChunkMemory, bytes: number): ReturnType<ChunkMemory['borrow']> {
  const json = memory.borrow('long');
  json.appendRaw(Buffer.alloc(bytes));
  memory.lend(json, 'long').release();
  return json;
}

test('a buffer is used again, empty, for pages of its size', (t) => {
  const memory = new ChunkMemory();
  const json = used(memory, 60_000);
  t.not(memory.borrow('short'), json);
  t.is(memory.borrow('long'), json);
  t.is(json.length, 0);
});

test('a chunk that fills less than half of its buffer is copied, so that a slow client does not keep a large one', (t) => {
  const memory = new ChunkMemory();
  const large = used(memory, 1_000_000);
  t.is(memory.borrow('long'), large);
  large.appendRaw(Buffer.from('abc'));
  const { json } = memory.lend(large, 'long');
  t.deepEqual([json.toString(), json.capacity], ['abc', 3]);
  t.is(memory.borrow('long'), large);
});

test('a link has the parameters of its list, and is accepted where the list was', (t) => {
  const text = fc.string({
    unit: fc.oneof(
      fc.constantFrom(...'"<>\\^`{|},;:/?@$+&=# %é'),
      fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
    ),
    minLength: 1,
    maxLength: 400,
  });
  const plain = text.filter((each) => each.isWellFormed());
  fc.assert(
    fc.property(
      plain,
      fc.array(plain, { minLength: 1, maxLength: 4 }),
      fc.constantFrom('', '&cursor=c'),
      (naam, ids, cursor) => {
        const target = composeUrl({ baseUrl: '/api/v1' }, 'klanten', { naam, ids }) + cursor;
        const query = target.slice(target.indexOf('?') + 1);
        const { single, lists, faults } = parseQuery(query, ['naam', 'ids', 'cursor'], (name) => name === 'ids');
        t.deepEqual([single.get('naam'), lists.get('ids'), faults], [naam, ids, []]);
        const request = (url: string) => ({ url, headers: {} }) as IncomingMessage;
        t.notThrows(() => checkTarget(request(target)));
      },
    ),
  );
});

test('a percent-encoded unreserved character of a path is that character, and any other stays', (t) => {
  const target = (url: string): string | undefined => {
    const request = { url, headers: {} } as IncomingMessage;
    checkTarget(request);
    return request.url;
  };
  t.is(target('/api/v1/t%6Fken'), '/api/v1/token');
  t.is(target('/%61pi/v1/klanten/%7e%2D%5F%2Fa%41?naam=%41%6f'), '/api/v1/klanten/~-_%2FaA?naam=%41%6f');
});

test('a target that links would make longer than they may be is refused at once', (t) => {
  const check = (url: string) => () => checkTarget({ url, headers: {} } as IncomingMessage);
  t.throws(check(`/api/v1/klanten?naam=${'"'.repeat(2000)}`), { instanceOf: Problem });
  t.notThrows(check(`/api/v1/klanten?naam=${':'.repeat(4000)}`));
  t.throws(check(`/api/v1/klanten?naam=${'x'.repeat(5110)}`), { instanceOf: Problem });
  t.notThrows(check(`/api/v1/klanten?naam=${'x'.repeat(5000)}&cursor=${'y'.repeat(4000)}`));
  t.throws(check(`/api/v1/klanten?cursor=${'y'.repeat(9300)}`), { instanceOf: Problem });
});
