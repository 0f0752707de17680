import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cpuMsOf, outputOf, rssMbOf, treeCpuMsOf } from './processes.js';

/** A load: keep-alive connections that each send the next request when the last is answered. */
export interface Load {
  readonly origin: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly connections: number;
  readonly seconds: number;
  /** GET of the paths in turn, or POST of the bodies to a path, each with another key. */
  readonly requests:
    | { readonly gets: readonly string[] }
    | { readonly post: string; readonly bodies: readonly string[] };
}

/** Measurements of wrk, and the cost to the server and its database: the replica, or the primary for writes. */
export interface LoadCost {
  /** Requests that were answered well. */
  readonly requests: number;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly failures: number;
  readonly serverCpuMs: number;
  readonly databaseCpuMs: number;
  readonly rssMb: number;
}

const { WRK_BIN: wrk = 'wrk' } = process.env;
/** Requests refused because no connection became free in time: few, unless something else keeps the machine busy. */
const failedShareMax = 0.02;

/**
 * wrk needs a tenth of the processor time of a load generator in Node.js, which matters because it shares its processors with the servers
 * it measures.
 */
export function needWrk(): void {
  if (spawnSync(wrk, ['-v']).error !== undefined)
    throw new Error('There is no wrk (Debian: apt install wrk); WRK_BIN names one elsewhere.');
}

/** One run of the load; throws when more than one request in fifty failed. */
export async function runLoad(load: Load, serverPid: number, databasePid: number): Promise<LoadCost> {
  const folder = mkdtempSync(join(tmpdir(), 'gateway-bench-wrk-'));
  try {
    const [scriptFile, resultFile] = [join(folder, 'load.lua'), join(folder, 'result.json')];
    writeFileSync(scriptFile, scriptOf(load) + counting(resultFile));
    const [serverMs, databaseMs] = [cpuMsOf(serverPid), treeCpuMsOf(databasePid)];
    const size = ['-t', '1', '-c', String(load.connections), '-d', `${load.seconds}s`, '--timeout', '10s'];
    await outputOf(wrk, [...size, '-s', scriptFile, load.origin]);
    const counts = JSON.parse(readFileSync(resultFile, 'utf8')) as number[];
    const [requests = 0, durationUs = 0, failures = 0, p50Us = 0, p99Us = 0] = counts;
    if (requests === 0 || failures > requests * failedShareMax)
      throw new Error(`${failures} requests to ${load.origin} failed, ${requests} did not.`);
    return {
      requests,
      perSecond: requests / (durationUs / 1e6),
      p50Ms: p50Us / 1000,
      p99Ms: p99Us / 1000,
      failures,
      serverCpuMs: cpuMsOf(serverPid) - serverMs,
      databaseCpuMs: treeCpuMsOf(databasePid) - databaseMs,
      rssMb: rssMbOf(serverPid),
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function scriptOf({ headers, requests }: Load): string {
  const common = Object.entries(headers).map(([name, value]) => `wrk.headers[${lua(name)}] = ${lua(value)}\n`);
  const [method, targets] = 'gets' in requests ? ['GET', requests.gets] : ['POST', requests.bodies];
  const next = `local all = { ${targets.map(lua).join(', ')} }
local at = 0
local next = function()
  at = at % #all + 1
  return all[at]
end
`;
  const gets = `local made = {}
init = function(args)
  for i, path in ipairs(all) do made[i] = wrk.format('GET', path) end
  all = made
end
request = next
`;
  const posts =
    'post' in requests
      ? `wrk.headers['content-type'] = 'application/json'
local random = math.random
init = function(args) math.randomseed(${Math.floor(Math.random() * 2 ** 31)}) end
request = function()
  wrk.headers['idempotency-key'] = string.format('%08x-%04x-4%03x-8%03x-%06x%06x', random(0, 0xffffffff), random(0, 0xffff), random(0, 0xfff),
    random(0, 0xfff), random(0, 0xffffff), random(0, 0xffffff))
  return wrk.format('POST', ${lua(requests.post)}, nil, next())
end
`
      : '';
  return common.join('') + next + (method === 'GET' ? gets : posts);
}

/** Writes wrk's counts to a file, as a JSON array. */
function counting(resultFile: string): string {
  return `done = function(summary, latency, requests)
  local e = summary.errors
  local file = io.open(${lua(resultFile)}, 'w')
  file:write(string.format('[%d,%d,%d,%f,%f]', summary.requests - e.status, summary.duration,
    e.connect + e.read + e.write + e.status + e.timeout, latency:percentile(50), latency:percentile(99)))
  file:close()
end
`;
}

/** A Lua string: JSON's escapes of what paths, headers and bodies hold are Lua's too. */
function lua(text: string): string {
  return JSON.stringify(text);
}
