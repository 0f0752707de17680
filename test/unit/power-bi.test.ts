import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { loadResources } from '../../src/definition/load.js';
import { projectRoot } from '../../src/paths.js';
import { output, toolsInstalled, toolsMissing, workFolder } from '../support/client-tools.js';

const text = readFileSync(join(projectRoot, 'docs/clients/power-bi.md'), 'utf8');
const [whole, first, last] = [...text.matchAll(/```powerquery\n(.*?)```/gs)].map(([, block]) => block) as [
  string,
  string,
  string,
];

/** The query of all work orders with the steps of incremental refresh in their places. */
const incremental = whole
  .replace('  First = [perPage = "10000"],\n', () => first)
  .replace('\nin\n  Typed', () => `,\n${last}in\n  InRange`);

/** A call of Web.Contents: its first argument, and the names of the options in its second. */
interface Call {
  readonly kind: string;
  readonly literalKind: string;
  readonly text: string;
  readonly names: readonly string[];
}

(toolsInstalled ? test : test.skip)(
  `Microsoft's parser reads both queries, and each Web.Contents has a literal address, RelativePath and Query${toolsMissing}`,
  async (t) => {
    t.true(incremental.includes('RangeEnd - #duration') && incremental.includes('InRange ='));
    const bad = 'let a = Web.Contents("https://" & Host, [Query = [perPage = "1"]]) in a';
    const folder = workFolder({ 'whole.pq': whole, 'incremental.pq': incremental, 'bad.pq': bad });
    const files = ['whole.pq', 'incremental.pq', 'bad.pq'].map((name) => join(folder, name));
    const calls = JSON.parse(await output(process.execPath, ['powerquery.mjs', ...files])) as Call[];
    const address = { kind: 'LiteralExpression', literalKind: 'Text', text: '"https://data.example.com"' };
    const right = { ...address, names: ['RelativePath', 'Query'] };
    t.deepEqual(calls.slice(0, 2), [right, right]);
    t.not(calls[2]?.kind, right.kind, 'a computed address is none');
    rmSync(folder, { recursive: true });
  },
);

test('Power Query of work orders asks for the days of its range: RangeEnd is exclusive, `to` inclusive', (t) => {
  const days =
    /from = DateTime\.ToText\(RangeStart, .*\),\n\s+to = DateTime\.ToText\(RangeEnd - #duration\(0, 0, 0, 1\), /;
  t.regex(first, days);
  t.regex(last, /\[datum\] >= Date\.From\(RangeStart\) and \[datum\] < Date\.From\(RangeEnd\)/);
});

test('the columns of Power Query are the members of a work order, so that an empty list has them, too', (t) => {
  const columns = /Columns = \{(.*?)\}/s.exec(whole)?.[1]?.match(/(?<=")\w+(?=")/g);
  const workOrders = loadResources('').find(({ name }) => name === 'werkbonnen');
  t.deepEqual([...(columns ?? [])], Object.keys(workOrders?.fields ?? {}));
  const typed = [...text.matchAll(/\{"(\w+)", type \w+\}/g)].map(([, name]) => name as string);
  t.deepEqual(
    typed,
    columns?.filter((name) => name !== 'handelingen' && name !== 'uren'),
  );
});
