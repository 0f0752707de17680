import { setTimeout as sleep } from 'node:timers/promises';

/** Polls until `check` holds; false when it still does not after `msMax` milliseconds. Every wait here has such a bound. */
export async function until(check: () => boolean | Promise<boolean>, msMax: number, stepMs = 10): Promise<boolean> {
  const deadline = performance.now() + msMax;
  while (!(await check())) {
    if (performance.now() > deadline) return false;
    await sleep(stepMs);
  }
  return true;
}
