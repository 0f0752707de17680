import { join } from 'node:path';
import test from 'ava';
import type { PgNode } from '../../demo/cluster/node.js';
import { projectRoot } from '../../src/base/paths.js';
import { reportStatus, type StatusReport } from '../../src/serve/ops/status.js';
import {
  type Browser,
  browserMissing,
  launchBrowser,
  openPage,
  overflowing,
  type Page,
  seriousFindings,
} from '../support/browser.js';
import { type FaultCluster, type FaultGateway, faultCluster } from '../support/fault-cluster.js';
import { eventually } from '../support/workspace.js';

// One gateway, whose replicas begin to lag and to fail while its page is open in a browser.

let setUp: FaultCluster;
let gateway: FaultGateway;
let browser: Browser | undefined;
test.before(async () => {
  setUp = await faultCluster();
  gateway = await setUp.gateway({ lagMaxMs: 6000 });
  if (browserMissing === '') browser = await launchBrowser();
});
test.after.always(async () => {
  await browser?.close();
  await setUp?.stop();
});

const status = async () => (await (await fetch(`${gateway.gateway.opsUrl}/status.json`)).json()) as StatusReport;
const headline = (page: Page): Promise<string> => page.evaluate("document.querySelector('.summary').innerText");

/** `STATUS_IMAGES=docs/images npm test -- dist/test/fault/status.test.js` makes the pictures of docs/operate/monitoring.md again. */
async function picture(page: Page, name: string): Promise<void> {
  if (process.env.STATUS_IMAGES === undefined) return;
  await page.setViewportSize({ width: 1000, height: 560 });
  await page.emulateMedia({ colorScheme: 'light' });
  await page.screenshot({ path: join(projectRoot, process.env.STATUS_IMAGES, name) });
}

async function defects(page: Page): Promise<string[]> {
  const found: string[] = [];
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    found.push(...(await seriousFindings(page)).map((finding) => `${colorScheme}: ${finding}`));
  }
  await page.setViewportSize({ width: 360, height: 740 });
  return [...found, ...(await overflowing(page))];
}

const withoutPage = browserMissing.replace('skipped', 'its page is skipped');
const nameOf = (i: number): string => gateway.gateway.replicas[i]?.name as string;

test.serial('a replica whose login its primary refuses receives no WAL, and the status says so', async (t) => {
  const own = await setUp.gateway({ lagMaxMs: 1000 });
  const [replica] = setUp.cluster.replicas as [PgNode];
  const [row] = await replica.query<{ primary_conninfo: string }>('show primary_conninfo');
  const conninfo = row?.primary_conninfo as string;
  t.teardown(() => replica.configure({ primary_conninfo: conninfo }));
  await replica.configure({ primary_conninfo: conninfo.replace(/user=\S+/, 'user=gone') });
  const isEjected = async (): Promise<boolean> => {
    await setUp.sql('select pg_switch_wal(), pg_logical_emit_message(true, $1, $1)', ['later']);
    return own.gateway.replicas[0]?.state.reason === 'it receives no WAL';
  };
  await eventually(t, 'the reason', isEjected, 20_000);
  const { faults } = reportStatus(own.gateway.readiness(), 0);
  t.true(faults.some(({ sentence, link }) => /receives no WAL/.test(sentence) && link.endsWith('#replica-lags')));
  await own.stop();
});

test.serial(`the status names a replica that lags, then one that is stopped${withoutPage}`, async (t) => {
  const open = browser && (await openPage(browser, `${gateway.gateway.opsUrl}/status`));
  await eventually(t, 'a status without faults', async () => (await status()).summary === 'All is well.');
  const shown = async (words: RegExp) => open === undefined || words.test(await headline(open.page));
  await eventually(t, 'the same on the page', () => shown(/^All is well\.$/), 20_000);
  if (open) await picture(open.page, 'status-well.png');
  if (open) t.deepEqual(await defects(open.page), []);

  const [first, second] = setUp.cluster.replicas;
  await first?.query('select pg_wal_replay_pause()');
  await setUp.sql('create table app.moved as select 1');
  await eventually(t, 'the words about the lag', async () => {
    const { level, summary, replicas } = await status();
    return level === 'degraded' && summary.startsWith(`${nameOf(0)} lags `) && replicas[0]?.state === 'lagging';
  });
  await eventually(
    t,
    'the words on the page',
    () => shown(new RegExp(`${nameOf(0)} (lags|is not used: it lags)`)),
    20_000,
  );
  await eventually(t, 'its ejection', async () => (await status()).replicas[0]?.state === 'not used');
  await eventually(t, 'the same on the page', () => shown(/is not used/), 20_000);
  if (open) await picture(open.page, 'status-fault.png');

  await second?.stop();
  await eventually(t, 'no replica', async () => (await status()).level === 'failing');
  const { faults } = await status();
  const sentences = faults.map(({ sentence }) => sentence).filter((sentence) => !/processor time/.test(sentence)); // a busy machine
  t.regex(
    sentences.join('\n'),
    new RegExp(
      `^Reads fail: no replica can be used\\.\n${nameOf(0)} is not used: it lags behind the primary; its lag is [\\d.]+ s\\.\n${nameOf(1)} is not used: .*$`,
    ),
  );
  await eventually(
    t,
    'the same on the page',
    () => shown(new RegExp(`There are [34] faults.*${nameOf(1)} is not used`, 's')),
    20_000,
  );
  if (open) t.deepEqual([...(await defects(open.page)), ...open.faults], []);

  await gateway.stop();
  await eventually(t, 'a page that knows that it is old', () => shown(/has not answered since/), 20_000);
});
