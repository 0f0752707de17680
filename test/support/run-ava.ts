import { type ChildProcess, type ChildProcessByStdio, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { projectRoot } from '../../src/base/paths.js';
import { lateOptimizing } from './late-optimizing.js';

interface AvaRun {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  /** Lines of tests that took a minute or more. */
  readonly slow: readonly string[];
}

/** AVA's own limit does not name the file, and never fires again once it fell into the `t.timeout()` of a test. */
const silentMsMax = 300_000;

/** Shows the output as it comes, or after that of a run beside it. A process in which no test ends is named and killed. */
export async function runAva(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  isShownAtOnce = true,
): Promise<AvaRun> {
  const ava = join(projectRoot, 'node_modules/ava/entrypoints/cli.mjs');
  const child = spawn(process.execPath, [ava, ...lateOptimizing.map((flag) => `--node-arguments=${flag}`), ...args], {
    cwd: projectRoot,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...env },
  });
  const stop = (signal: NodeJS.Signals): void => {
    child.kill(signal);
    child.once('exit', () => process.exit(1));
  };
  for (const signal of stopSignals) process.on(signal, stop);
  const kept: Buffer[] = [];
  const seen = watchOutput(child, (chunk) => void (isShownAtOnce ? process.stdout.write(chunk) : kept.push(chunk)));
  const timer = setInterval(() => {
    const silentMs = Date.now() - seen.lastMs;
    if (seen.isAtSummary && silentMs > 10_000) {
      console.error('AVA does not end, as a program that a test started holds its output open: killed.');
      child.kill('SIGKILL');
      for (const stream of [child.stdout, child.stderr]) stream.destroy();
    } else if (silentMs > silentMsMax) {
      seen.lastMs = Date.now();
      killHanging(child);
    }
  }, 5000);
  await once(child, 'close');
  clearInterval(timer);
  for (const signal of stopSignals) process.off(signal, stop);
  process.stdout.write(Buffer.concat(kept));
  const { '✔': passed, '✘': failed, '-': skipped } = seen.counts;
  const isGood = child.exitCode === 0 || (seen.isAtSummary && failed === 0);
  return { passed, failed: isGood ? 0 : Math.max(failed, 1), skipped, slow: seen.slow };
}

const stopSignals = ['SIGINT', 'SIGTERM'] as const;

function watchOutput({ stdout, stderr }: ChildProcessByStdio<null, Readable, Readable>, show: (chunk: Buffer) => void) {
  const seen = { counts: { '✔': 0, '✘': 0, '-': 0 }, lastMs: Date.now(), isAtSummary: false, slow: [] as string[] };
  let rest = '';
  stderr.pipe(process.stderr, { end: false });
  stdout.on('data', (chunk: Buffer) => {
    show(chunk);
    const lines = (rest + chunk.toString()).split('\n');
    rest = lines.pop() as string;
    for (const line of lines) {
      const mark = /^\s+([✔✘-]) /.exec(line)?.[1] as keyof typeof seen.counts | undefined;
      if (mark !== undefined && !seen.isAtSummary) {
        seen.counts[mark]++;
        seen.lastMs = Date.now();
        if (/\(\d+m \d+s\)$/.test(line)) seen.slow.push(line.trim());
      }
      if (line === '  ─') Object.assign(seen, { isAtSummary: true, lastMs: Date.now() });
    }
  });
  return seen;
}

function killHanging({ pid }: ChildProcess): void {
  const { stdout } = spawnSync('ps', ['-o', 'pid,stat,wchan:20,etimes,args', '--ppid', String(pid)], {
    encoding: 'utf8',
  });
  const pids = (stdout ?? '').split('\n').flatMap((line) => /^\s*(\d+)/.exec(line)?.[1] ?? []);
  console.error(
    `No test ended for ${silentMsMax / 1000} s; killed:\n${pids.length > 0 ? stdout : `AVA, process ${pid}`}`,
  );
  for (const hanging of pids.length > 0 ? pids : [pid]) {
    try {
      process.kill(Number(hanging), 'SIGKILL');
    } catch {
      // It has ended.
    }
  }
}
