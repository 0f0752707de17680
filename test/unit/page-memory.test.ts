import test from 'ava';
import type { WorkspaceId } from '../../src/postgres/statement.js';
import type { PageEnd, PageSeries } from '../../src/read/page-ends.js';
import { PageMemory } from '../../src/read/page-memory.js';

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
  const pages = [0, 4, 6, 10, 24, 26, 40, 900].map((page) => memory.nearest(a, page).page);
  t.deepEqual(pages, [0, 0, 10, 10, 10, 40, 40, 40]);
  t.deepEqual(memory.nearest(a, 900).end, end('forty'));
  t.deepEqual(memory.nearest(a, 4).end, { key: null, asOfMs: null });
});

test('the end of a page that lacks rows leads to the next page only', (t) => {
  const memory = new PageMemory(100, 1000, () => 0);
  memory.remember(a, 50, end('last'), false);
  t.is(memory.nearest(a, 50).page, 50);
  t.is(memory.nearest(a, 51).page, 0);
});

test('another token, workspace, list or page size knows nothing of an end', (t) => {
  const memory = new PageMemory(100, 1000, () => 0);
  memory.remember(a, 5, end('five'), true);
  const others = [
    series('a', 'other'),
    series('b', 'token of a'),
    series('a', undefined, 'other'),
    { ...a, perPage: 1 },
  ];
  for (const other of others) t.is(memory.nearest(other, 5).page, 0);
  t.is(memory.nearest(a, 5).page, 5);
});

test('an end is forgotten after its time', (t) => {
  let nowMs = 0;
  const memory = new PageMemory(100, 1000, () => nowMs);
  memory.remember(a, 5, end('five'), true);
  nowMs = 999;
  t.deepEqual([memory.nearest(a, 5).page, memory.nearest(a, 6).page], [5, 5]);
  nowMs = 1000;
  t.deepEqual([memory.nearest(a, 5).page, memory.nearest(a, 6).page], [0, 0]);
});

test('while memory is full the workspace with the most ends loses those of the list that it used least recently', (t) => {
  const memory = new PageMemory(10, 1000, () => 0);
  const [b, unused] = [series('b'), series('b', 'unused')];
  memory.remember(a, 1, end('one'), true);
  memory.remember(unused, 1, end('one'), true);
  for (let page = 1; page <= 20; page++) memory.remember(b, page, end(String(page)), true);
  t.is(memory.nearest(a, 1).page, 1, 'the other workspace keeps its own');
  t.is(memory.nearest(unused, 1).page, 0);
  const kept = Array.from({ length: 20 }, (_, i) => i + 1).filter((page) => memory.nearest(b, page).page === page);
  t.deepEqual(kept, [12, 13, 14, 15, 16, 17, 18, 19, 20]);
  memory.remember(a, 1, end('again'), true);
  t.is(memory.nearest(b, 12).page, 12, 'an end that is remembered again takes no room');
});
