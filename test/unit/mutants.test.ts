import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { projectRoot } from '../../src/paths.js';

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
