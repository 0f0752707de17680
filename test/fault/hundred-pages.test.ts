import test from 'ava';
import { disturbedSettings, disturbPages } from '../support/disturbed-pages.js';
import { faultCluster } from '../support/fault-cluster.js';

test('a hundred disturbed pages equal undisturbed ones', async (t) => {
  const setUp = await faultCluster();
  t.teardown(() => setUp.stop());
  const gateway = await setUp.gateway(disturbedSettings, true);
  const { resumed, faults, longestGapMs } = await disturbPages(setUp, gateway, '/installaties?perPage=400', 100);
  t.deepEqual(faults, []);
  t.true(resumed >= 100, `${resumed} pages were disturbed`);
  t.log(`${resumed} pages continued, the longest pause was ${Math.round(longestGapMs)} ms`);
  await gateway.backToNormal(t);
});
