import test from 'ava';
import { readProject } from '../src/base/paths.js';
import { sourcesIn } from './support/sources.js';

const pages = [{ path: 'README.md', text: readProject('README.md') }, ...sourcesIn('docs', '.md')];

/** The words that a page can have, by the beginning of its path; the first that fits counts. */
const wordsMax: readonly (readonly [beginning: string, words: number])[] = [
  ['README.md', 800],
  ['docs/reference/', 3500],
  ['docs/contribute/decisions.md', 3500],
  ['docs/', 2500],
];
const cellWordsMax = 15;
const tableShareMax = 0.15;

/** Counts as `wc -w` does, blocks of code included. */
const countWords = (text: string): number => text.split(/\s+/).filter((word) => word !== '').length;

/** Takes the cells of the tables of a page as a reader sees them, without anchors and targets of links. */
function cellsOf(text: string): string[] {
  return text
    .replace(/^```[\s\S]*?^```/gm, '')
    .split('\n')
    .filter((line) => line.startsWith('|') && !/^\|[-:| ]+\|$/.test(line))
    .flatMap((line) => line.split(/(?<!\\)\|/).slice(1, -1))
    .map((cell) =>
      cell
        .replace(/<[^>]+>/g, '')
        .replace(/\]\([^)]*\)/g, ']')
        .trim(),
    );
}

test('a page is short enough for one reader with one task', (t) => {
  const tooLong = pages.flatMap(({ path, text }) => {
    const [, max] = wordsMax.find(([beginning]) => path.startsWith(beginning)) as (typeof wordsMax)[number];
    const words = countWords(text);
    return words > max ? [`${path}: ${words} words, at most ${max}`] : [];
  });
  t.deepEqual(tooLong, []);
});

test(`a cell of a table is a value to look up, of ${cellWordsMax} words at most`, (t) => {
  const tooLong = pages.flatMap(({ path, text }) =>
    cellsOf(text)
      .filter((cell) => countWords(cell) > cellWordsMax)
      .map((cell) => `${path}: ${countWords(cell)} words: ${cell}`),
  );
  t.deepEqual(tooLong, []);
});

test(`of the words outside docs/reference at most ${tableShareMax * 100} % stand in tables`, (t) => {
  const counted = pages.filter(({ path }) => !path.startsWith('docs/reference/'));
  const inTables = counted.flatMap(({ text }) => cellsOf(text)).reduce((sum, cell) => sum + countWords(cell), 0);
  const all = counted.reduce((sum, { text }) => sum + countWords(text), 0);
  t.true(inTables <= all * tableShareMax, `${inTables} of ${all} words`);
});
