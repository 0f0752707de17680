import test from 'ava';
import { checkOpenPoints } from '../../src/check/open-points.js';
import { altered, load, owners } from '../support/definitions.js';

test('check warns of each guess in a definition, with its place, its file and the advice', (t) => {
  const guessed = altered(owners, 'fields/name/description', 'OPEN: it may be a nickname.');
  const [resource] = load({ 'owners.json': guessed });
  const items = checkOpenPoints(resource as Parameters<typeof checkOpenPoints>[0]);
  t.like(items[0], { level: 'warning', code: 'open_points', object: 'owners' });
  t.regex(
    items[0]?.detail ?? '',
    /^[/]fields[/]name[/]description: it may be a nickname; the definition is .*owners[.]json[.]$/,
  );
  t.is(items.length, 1);
});

test('check warns of nothing in a definition without a guess', (t) => {
  t.deepEqual(load({ 'owners.json': owners }).flatMap(checkOpenPoints), []);
});
