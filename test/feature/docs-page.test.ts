import {
  type Browser,
  browserMissing,
  launchBrowser,
  openPage,
  overflowing,
  seriousFindings,
} from '../support/browser.js';
import { gatewayTest } from '../support/workspace.js';

const suite = gatewayTest();
const test = browserMissing ? suite.skip : suite;
const running: { browser?: Browser } = {};

suite.before(async () => {
  if (!browserMissing) running.browser = await launchBrowser();
});
suite.after.always(() => running.browser?.close());

test(`the docs page opens without a fault in Chromium${browserMissing}`, async (t) => {
  const { page, faults } = await openPage(running.browser as Browser, `${t.context.gateway.opsUrl}/docs`);
  t.deepEqual(faults, []);
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    t.deepEqual(await seriousFindings(page), [], colorScheme);
  }
  await page.setViewportSize({ width: 360, height: 740 });
  t.deepEqual(await overflowing(page), []);
});
