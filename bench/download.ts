import { runToEnd } from './child.js';
import { cpuMsOf, peakMbOf, resetPeak } from './process-cost.js';

export interface Download {
  readonly url: string;
  readonly token: string;
  /** For Accept-Encoding; default identity. A page in another encoding counts as not whole. */
  readonly encoding?: string;
}

/** Times count from before the connection is made. */
export interface DownloadResult {
  readonly wallMs: number;
  readonly firstByteMs: number;
  readonly bytes: number;
  /** Whether the page came to its end. */
  readonly complete: boolean;
}

/** The same, and its cost to the gateway. */
export interface DownloadCost extends DownloadResult {
  readonly serverCpuMs: number;
  readonly peakMb: number;
}

const program = new URL('./download-process.js', import.meta.url);

/** Reads one page on a connection of its own, in a process of its own. Throws when the page is not whole. */
export async function download(what: Download, serverPid: number): Promise<DownloadCost> {
  resetPeak(serverPid);
  const cpuMs = cpuMsOf(serverPid);
  const result = JSON.parse(await runToEnd(program, [JSON.stringify(what)], {})) as DownloadResult;
  if (!result.complete) throw new Error(`The page ${what.url} is not whole: ${result.bytes} bytes.`);
  return { ...result, serverCpuMs: cpuMsOf(serverPid) - cpuMs, peakMb: peakMbOf(serverPid) };
}
