import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { projectRoot } from '../../src/base/paths.js';
import { namedBy } from '../mutants/named-by.js';

const mutants = JSON.parse(readFileSync(join(projectRoot, 'test/mutants.json'), 'utf8')) as {
  name: string;
  file: string;
  find: string;
  replace: string;
  test: string;
}[];

test('every mutant still fits the source: its text stands once in its file, and its test exists', (t) => {
  const source = (path: string): string => {
    const full = join(projectRoot, path);
    return existsSync(full) ? readFileSync(full, 'utf8') : '';
  };
  const unfit = mutants.filter(
    ({ file, find, replace, test: by }) =>
      source(file).split(find).length !== 2 || find === replace || !existsSync(join(projectRoot, by)),
  );
  t.deepEqual(unfit, []);
});

test('no two mutants have the same name', (t) => {
  t.is(new Set(mutants.map(({ name }) => name)).size, mutants.length);
});

test('mutants are chosen by a whole name or by a part of names, and a part of none is refused in a line', (t) => {
  const names = ['the row', 'the row is locked', 'a key is locked'];
  t.deepEqual(namedBy('the row', names), ['the row']);
  t.deepEqual(namedBy('locked', names), ['the row is locked', 'a key is locked']);
  for (const part of ['lock of', ''])
    t.throws(() => namedBy(part, names), { message: `None of the 3 names contains "${part}": see test/mutants.json.` });
});
