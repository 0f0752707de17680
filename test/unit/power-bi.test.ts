import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { loadResources } from '../../src/definition/load.js';
import { projectRoot } from '../../src/paths.js';

const text = readFileSync(join(projectRoot, 'docs/clients/power-bi.md'), 'utf8');
const blocks = [...text.matchAll(/```powerquery\n(.*?)```/gs)].map(([, block]) => block as string);

test('Power Query is given a constant address: the service refuses to refresh a query that computes it', (t) => {
  const addresses = blocks.flatMap((block) =>
    [...block.matchAll(/Web\.Contents\(\s*([^,]*),/g)].map(([, first]) => first),
  );
  t.deepEqual(addresses, ['"https://data.example.com"']);
  const readme = readFileSync(join(projectRoot, 'README.md'), 'utf8');
  t.false(readme.includes('Web.Contents'));
});

test('the columns of Power Query are the members of a work order, so that an empty list has them, too', (t) => {
  const columns = /Columns = \{(.*?)\}/s.exec(blocks[0] as string)?.[1]?.match(/(?<=")\w+(?=")/g);
  const workOrders = loadResources('').find(({ name }) => name === 'werkbonnen');
  t.deepEqual([...(columns ?? [])], Object.keys(workOrders?.fields ?? {}));
  const typed = [...text.matchAll(/\{"(\w+)", type \w+\}/g)].map(([, name]) => name as string);
  t.deepEqual(
    typed,
    columns?.filter((name) => name !== 'handelingen' && name !== 'uren'),
  );
});
