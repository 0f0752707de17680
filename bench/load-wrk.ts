import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Load, LoadResult } from './load.js';
import { cpuMsOfEndedChildren } from './process-cost.js';

/** Process of the load generator where there is wrk: the program and the load as arguments, the result as JSON on stdout. */
const [, , wrk = 'wrk', task = ''] = process.argv;
const { origin, paths, headers, connections, seconds } = JSON.parse(task) as Load;

/** Requests are made once; each connection's next request is the next of all. wrk's counts are printed as JSON. */
const script = (resultFile: string): string => `
local requests = {}
local at = 0
init = function(args)
${Object.entries(headers)
  .map(([name, value]) => `  wrk.headers[${lua(name)}] = ${lua(value)}`)
  .join('\n')}
  for i, path in ipairs({ ${paths.map(lua).join(', ')} }) do requests[i] = wrk.format('GET', path) end
end
request = function()
  at = at % #requests + 1
  return requests[at]
end
done = function(summary, latency, requests)
  local e = summary.errors
  local file = io.open(${lua(resultFile)}, 'w')
  file:write(string.format('[%d,%d,%d,%d,%f,%f]', summary.requests - e.status, summary.duration, summary.bytes,
    e.connect + e.read + e.write + e.status + e.timeout, latency:percentile(50), latency:percentile(99)))
  file:close()
end
`;

const folder = mkdtempSync(join(tmpdir(), 'gateway-bench-wrk-'));
try {
  const resultFile = join(folder, 'result.json');
  writeFileSync(join(folder, 'load.lua'), script(resultFile));
  const options = [
    '-t',
    '1',
    '-c',
    String(connections),
    '-d',
    `${seconds}s`,
    '--timeout',
    '10s',
    '-s',
    join(folder, 'load.lua'),
    origin,
  ];
  const { status, stderr } = spawnSync(wrk, options, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`wrk ended with code ${status}: ${stderr}`);
  const counts = JSON.parse(readFileSync(resultFile, 'utf8')) as number[];
  const [requests = 0, durationUs = 0, bytes = 0, failures = 0, p50Us = 0, p99Us = 0] = counts;
  const result: LoadResult = {
    requests,
    perSecond: requests / (durationUs / 1e6),
    p50Ms: p50Us / 1000,
    p99Ms: p99Us / 1000,
    failures,
    bytes,
    generatorCpuMs: cpuMsOfEndedChildren(process.pid),
  };
  process.stdout.write(JSON.stringify(result));
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/** A Lua string: JSON's escapes of what paths and headers hold are Lua's too. */
function lua(text: string): string {
  return JSON.stringify(text);
}
