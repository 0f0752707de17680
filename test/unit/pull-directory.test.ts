import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readlinkSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { type Client, Refused } from '../../pull/client.js';
import { type Copy, DestinationUnusable } from '../../pull/destination.js';
import { directoryDestination } from '../../pull/directory.js';
import { pass } from '../../pull/pass.js';
import { crashAt } from '../support/crash-points.js';
import { recordsIn } from '../support/directory-copy.js';

const columns = [
  { name: 'id', type: 'text' },
  { name: 'n', type: 'numeric' },
];
const record = (id: string, n: number): string => `{"id":"${id}","n":${n}}`;
const page = (...records: string[]): string => `{"data":[${records.join(',')}],"pagination":{}}`;
const whole = (since: string) => ({ since, cursor: null });

function folderFor(t: ExecutionContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'pull-directory-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  return folder;
}

/** The files of the folder that this process has open. */
function openFilesIn(folder: string): string[] {
  const links = readdirSync('/proc/self/fd').map((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`);
    } catch {
      return ''; // that of the listing itself
    }
  });
  return links.filter((path) => path.startsWith(folder));
}

async function withCopy(folder: string, work: (copy: Copy) => Promise<void>, fileBytesMax?: number): Promise<void> {
  const destination = await directoryDestination(folder, { format: 'ndjson', ...(fileBytesMax && { fileBytesMax }) });
  await work(await destination.open('orders', columns));
  await destination.close();
}

/** Two passes; each begins where the copy is, so that a run after a crash does what is missing. */
const passes: readonly ((copy: Copy) => Promise<void>)[] = [
  async (copy) => {
    if (copy.state.since !== null) return;
    if (copy.state.cursor === null)
      await copy.store(page(record('a', 1), record('b', 1)), { since: null, cursor: 'page 2' });
    await copy.store(page(record('c', 1), record('a', 2)), whole('1'));
    await copy.commit();
  },
  async (copy) => {
    if (copy.state.since === '1') await copy.store(page(record('b', 2), record('d', 2)), whole('2'));
    await copy.delete(await copy.ids([hashOf('c').slice(0, 3)]));
    await copy.commit();
  },
];
const hashOf = (id: string): string => createHash('sha256').update(id).digest('hex');
/** Each page is a commit: a file of one byte is full. */
async function allPasses(folder: string): Promise<void> {
  for (const pass of passes) await withCopy(folder, pass, 1);
}
const expected = [
  ['a', record('a', 2)],
  ['b', record('b', 2)],
  ['d', record('d', 2)],
];

test.serial('a process that is killed at any change of a file loses and doubles nothing', async (t) => {
  const reference = folderFor(t);
  const calls = await crashAt(Number.POSITIVE_INFINITY, () => allPasses(reference));
  t.true(calls > 40, `${calls} calls`);
  for (let call = 1; call <= calls; call++) {
    const folder = folderFor(t);
    await crashAt(call, () => allPasses(folder));
    recordsIn(join(folder, 'orders')); // throws unless the state fits the files
    await crashAt(Number.POSITIVE_INFINITY, () => allPasses(folder));
    t.deepEqual([...recordsIn(join(folder, 'orders'))].sort(), expected, `killed at call ${call}`);
    t.deepEqual(readdirSync(join(folder, 'orders')), readdirSync(join(reference, 'orders')), `killed at call ${call}`);
    await withCopy(folder, async (copy) => void t.deepEqual(await copy.digest(0), digestOf(['a', 'b', 'd'])));
  }
});

function digestOf(ids: readonly string[]): Map<string, string> {
  const xor = ids.reduce((sum, id) => sum ^ BigInt(`0x${hashOf(id).slice(0, 16)}`), 0n);
  return new Map([['', `${ids.length} ${xor.toString(16).padStart(16, '0')}`]]);
}

test.serial('ids and digests stay right over many records, deletions and openings', async (t) => {
  const folder = folderFor(t);
  const ids = Array.from({ length: 5000 }, (_, i) => `id ${i} é`);
  await withCopy(folder, async (copy) => {
    await copy.store(page(...ids.map((id) => record(id, 0))), whole('1'));
    await copy.delete(ids.slice(1000, 2000));
    await copy.store(page(...ids.slice(1500, 1600).map((id) => record(id, 1))), whole('1'));
  });
  const left = [...ids.slice(0, 1000), ...ids.slice(1500, 1600), ...ids.slice(2000)];
  await withCopy(folder, async (copy) => {
    t.deepEqual(await copy.digest(0), digestOf(left));
    const [prefix, text] = [...(await copy.digest(3))][7] as [string, string];
    const within = left.filter((id) => hashOf(id).startsWith(prefix));
    t.is(text, digestOf(within).get('') as string);
    t.deepEqual([...(await copy.ids([prefix]))].sort(), within.sort());
  });
});

test.serial('a member that is new begins a pass over everything, and another format is refused', async (t) => {
  const folder = folderFor(t);
  await withCopy(folder, (copy) => copy.store(page(record('a', 1)), whole('1')).then(() => undefined));
  const again = await directoryDestination(folder, { format: 'ndjson' });
  const copy = await again.open('orders', [...columns, { name: 'extra', type: 'text' }]);
  t.deepEqual([copy.state.since, copy.state.cursor], [null, null]);
  t.deepEqual(await copy.digest(0), digestOf(['a']));
  await again.close();
  const csv = await directoryDestination(folder, { format: 'csv' });
  await t.throwsAsync(csv.open('orders', columns), { instanceOf: DestinationUnusable, message: /--format ndjson/ });
  await csv.close();
});

test.serial('change files without their state are not removed', async (t) => {
  const folder = folderFor(t);
  await allPasses(folder);
  rmSync(join(folder, 'orders', 'state.json'));
  await t.throwsAsync(
    withCopy(folder, async () => undefined),
    { instanceOf: DestinationUnusable, message: /not in the state/ },
  );
  t.true(readdirSync(join(folder, 'orders')).includes('00000003.ndjson.gz'));
});

test.serial(
  'a lock from another host is respected until it was not refreshed for a minute, and its owner then stops',
  async (t) => {
    const folder = folderFor(t);
    const foreign = join(folder, 'lock-000007');
    writeFileSync(foreign, JSON.stringify({ place: 'elsewhere', host: 'other', pid: 5 }));
    await t.throwsAsync(directoryDestination(folder, { format: 'ndjson' }), {
      instanceOf: DestinationUnusable,
      message: /Another process \(process 5 on other\) pulls into this destination/,
    });
    const then = new Date(Date.now() - 90_000);
    utimesSync(foreign, then, then);
    const destination = await directoryDestination(folder, { format: 'ndjson' });
    t.deepEqual(readdirSync(folder), ['lock-000008']);
    const copy = await destination.open('orders', columns);
    writeFileSync(join(folder, 'lock-000009'), '{}'); // another process takes it while this one is suspended
    await copy.store(page(record('a', 1)), whole('1'));
    await t.throwsAsync(destination.close(), { instanceOf: DestinationUnusable });
    t.deepEqual(recordsIn(join(folder, 'orders')), new Map());
    t.deepEqual(openFilesIn(folder), []);
  },
);

test.serial(
  'a lock that is not whole is waited for, and taken over when its writer was killed meanwhile',
  async (t) => {
    const folder = folderFor(t);
    const foreign = join(folder, 'lock-000003');
    writeFileSync(foreign, '');
    const refused = t.throwsAsync(directoryDestination(folder, { format: 'ndjson' }), {
      message: /process 5 on other/,
    });
    await sleep(300);
    writeFileSync(foreign, JSON.stringify({ place: 'elsewhere', host: 'other', pid: 5 }));
    await refused;
    writeFileSync(foreign, '{"place":"else');
    const then = new Date(Date.now() - 4000);
    utimesSync(foreign, then, then);
    await directoryDestination(folder, { format: 'ndjson' });
    t.deepEqual(readdirSync(folder), ['lock-000004']);
  },
);

test('a token that expires between the last page and the comparison starts a pass over everything', async (t) => {
  const to = await directoryDestination(folderFor(t), { format: 'ndjson' });
  t.teardown(() => to.close());
  const copy = await to.open('codes', columns);
  const hash = createHash('sha256').update('a').digest('hex').slice(0, 16);
  const asked: string[] = [];
  const api: Client = {
    get: async (path) => {
      asked.push(path);
      if (path.includes('/digest') && path.endsWith('since=old')) throw new Refused(410, 'another history');
      const since = asked.length === 1 ? 'old' : 'new';
      const body = path.includes('/digest')
        ? { data: [{ prefix: '', count: 1, hash }] }
        : { data: [{ id: 'a', n: 1 }], pagination: { nextCursor: null, since } };
      return { text: JSON.stringify(body), value: body };
    },
  };
  const report = await pass(api, copy, 'codes');
  t.deepEqual([report.whole, report.pages, copy.state.since], [true, 2, 'new']);
  t.deepEqual(asked, [
    '/sync/codes?perPage=1000',
    '/sync/codes/digest?depth=0&since=old',
    '/sync/codes?perPage=1000',
    '/sync/codes/digest?depth=0&since=new',
  ]);
});
