import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { peakMbOf, treeCpuMsOf } from '../../bench/processes.js';
import { withSets } from '../../bench/scale/served.js';
import type { Subject } from '../../bench/scale/subject.js';
import { installed, startPull } from '../support/pull/copy.js';
import type { Figures } from './figures.js';

const memoryMbMax = 512;
const minutesMax = 15;

/**
 * Copies of a large workspace, within the limit of 60 requests a minute: their time, requests and memory. Two in five records are work
 * orders.
 */
export async function soakPullLarge(records = 5_000_000): Promise<Figures> {
  const workOrders = Math.round(records * 0.4);
  const tenant = { first: 0, last: 0, workOrders, logEntries: records - workOrders };
  const folder = mkdtempSync(join(tmpdir(), 'pull-large-'));
  try {
    return await withSets([{ database: 'large', tenants: [tenant] }], '60', async ({ cluster }, [subject]) => {
      if (subject === undefined) throw new Error('The set is not served.');
      writeFileSync(join(folder, 'token'), subject.token);
      await cluster.primary.query('create database copy');
      const figures: Record<string, number> = { Records: records };
      let ok = true;
      const run = async (name: string, to: string, more: readonly string[], seconds = Number.POSITIVE_INFINITY) => {
        const measured = await measure(subject, folder, ['--to', to, ...more]);
        ok &&= measured.peakMb <= memoryMbMax && measured.seconds <= seconds;
        figures[`${name}: time (s)`] = measured.seconds;
        figures[`${name}: requests`] = measured.requests;
        figures[`${name}: peak memory (MB)`] = measured.peakMb;
        figures[`${name}: processor time of the replica (s)`] = measured.replicaSeconds;
      };
      for (const [name, to] of [
        ['DuckDB', join(folder, 'copy.duckdb')],
        ['PostgreSQL', cluster.primary.url('copy')],
      ] as const) {
        await run(name, to, [], minutesMax * 60);
        await run(`${name}, --verify and --export`, to, ['--verify', '--export', join(folder, 'export')]);
      }
      return { ok, figures };
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

interface MeasuredPull {
  readonly seconds: number;
  readonly requests: number;
  readonly peakMb: number;
  readonly replicaSeconds: number;
}

async function measure(subject: Subject, folder: string, more: readonly string[]): Promise<MeasuredPull> {
  const [beforeRequests, beforeCpuMs, startedMs] = [
    await requestsOf(subject),
    treeCpuMsOf(subject.replicaPid),
    performance.now(),
  ];
  const { child, ended } = startPull(
    ['--base', subject.origin, '--token-file', join(folder, 'token'), ...more],
    installed,
  );
  child.stderr?.pipe(process.stderr);
  child.stdout?.pipe(process.stderr);
  let peakMb = 0;
  const timer = setInterval(() => {
    try {
      peakMb = peakMbOf(child.pid as number) || peakMb;
    } catch {} // it has just ended
  }, 100);
  const { code } = await ended;
  clearInterval(timer);
  if (code !== 0) throw new Error(`pull ended with code ${code}.`);
  return {
    seconds: Math.round((performance.now() - startedMs) / 1000),
    requests: (await requestsOf(subject)) - beforeRequests,
    peakMb: Math.round(peakMb),
    replicaSeconds: Math.round(treeCpuMsOf(subject.replicaPid) - beforeCpuMs) / 1000,
  };
}

async function requestsOf({ opsOrigin }: Subject): Promise<number> {
  const text = await (await fetch(`${opsOrigin}/metrics`)).text();
  const counts = text.matchAll(/^gateway_request_seconds_count\S* (\d+)$/gm);
  return [...counts].reduce((sum, [, count]) => sum + Number(count), 0);
}
