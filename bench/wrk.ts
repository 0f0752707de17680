import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Load, LoadResult } from './load.js';
import { cpuMsOfEndedChildren } from './process-cost.js';

/** Writes wrk's counts to a file, as a JSON array. */
const counting = (resultFile: string): string => `
done = function(summary, latency, requests)
  local e = summary.errors
  local file = io.open(${lua(resultFile)}, 'w')
  file:write(string.format('[%d,%d,%d,%d,%f,%f]', summary.requests - e.status, summary.duration, summary.bytes,
    e.connect + e.read + e.write + e.status + e.timeout, latency:percentile(50), latency:percentile(99)))
  file:close()
end
`;

/** Runs wrk with a Lua script that makes its requests, each of its threads with as many connections as the others. Blocks this process. */
export function runWrk(
  wrk: string,
  { origin, connections, seconds }: Pick<Load, 'origin' | 'connections' | 'seconds'>,
  threads: number,
  script: string,
): LoadResult {
  const folder = mkdtempSync(join(tmpdir(), 'gateway-bench-wrk-'));
  try {
    const [scriptFile, resultFile] = [join(folder, 'load.lua'), join(folder, 'result.json')];
    writeFileSync(scriptFile, script + counting(resultFile));
    const load = ['-t', String(threads), '-c', String(connections), '-d', `${seconds}s`, '--timeout', '10s'];
    const { status, stderr } = spawnSync(wrk, [...load, '-s', scriptFile, origin], { encoding: 'utf8' });
    if (status !== 0) throw new Error(`wrk ended with code ${status}: ${stderr}`);
    const counts = JSON.parse(readFileSync(resultFile, 'utf8')) as number[];
    const [requests = 0, durationUs = 0, bytes = 0, failures = 0, p50Us = 0, p99Us = 0] = counts;
    return {
      requests,
      perSecond: requests / (durationUs / 1e6),
      p50Ms: p50Us / 1000,
      p99Ms: p99Us / 1000,
      failures,
      bytes,
      generatorCpuMs: cpuMsOfEndedChildren(process.pid),
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A Lua string: JSON's escapes of what paths, headers and bodies hold are Lua's too. */
export function lua(text: string): string {
  return JSON.stringify(text);
}
