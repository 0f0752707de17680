import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { faultCluster } from '../support/fault-cluster.js';
import { largeRecords, measuredPull, wideRecords } from '../support/pull/large-records.js';
import { syncServer } from '../support/pull/sync-server.js';
import type { Figures } from './figures.js';

const memoryMbMax = 512;
const timesMax = 5;

const sets = {
  '5,001 records of 60 texts': () => wideRecords(5_001, 60),
  '1 record of 4 MB': () => largeRecords(1, 4e6),
  '1 record of 16 MB': () => largeRecords(1, 16e6),
  '100 records of 0.5 MB': () => largeRecords(100, 5e5),
};
const runs: Readonly<Record<string, readonly string[]>> = {
  copy: [],
  'verify, parquet': ['--verify', '--format', 'parquet'],
  csv: ['--format', 'csv'],
  ndjson: ['--format', 'ndjson'],
};

/** Copies and exports of large records: memory of each run, and the time of a record of 16 MB beside one of 4 MB. */
export async function soakPullMemory(): Promise<Figures> {
  const folder = mkdtempSync(join(tmpdir(), 'pull-memory-'));
  const setUp = await faultCluster({ replicas: 1 });
  try {
    writeFileSync(join(folder, 'token'), 'a-token-of-a-soak-test');
    const figures: Record<string, number> = {};
    const seconds: Record<string, number> = {};
    let ok = true;
    for (const [set, [name, records]] of Object.entries(sets).entries()) {
      const server = await syncServer({ things: records() });
      await setUp.cluster.primary.query(`create database memory${set}`);
      for (const to of [join(folder, `${set}.duckdb`), setUp.cluster.primary.url(`memory${set}`)])
        for (const [run, more] of Object.entries(runs)) {
          const exported = more.length === 0 ? [] : ['--export', join(folder, 'export')];
          const args = ['--base', server.base, '--token-file', join(folder, 'token'), '--to', to, ...exported, ...more];
          const { code, stderr, seconds: taken, peakMb } = await measuredPull(args);
          const what = `${to.startsWith('postgres') ? 'PostgreSQL' : 'DuckDB'}, ${name}, ${run}`;
          if (code !== 0) console.error(`${what}: ${stderr}`);
          ok &&= code === 0 && peakMb <= memoryMbMax;
          figures[`${what} (MB)`] = peakMb;
          seconds[what] = taken;
        }
      server.close();
    }
    for (const destination of ['DuckDB', 'PostgreSQL']) {
      const of = (size: string): number => seconds[`${destination}, 1 record of ${size}, copy`] as number;
      const times = Math.round((of('16 MB') / of('4 MB')) * 10) / 10;
      ok &&= times <= timesMax;
      figures[`${destination}: time of 16 MB / time of 4 MB`] = times;
    }
    return { ok, figures };
  } finally {
    await setUp.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}
