import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { loadResources } from '../../src/resource/definition/load.js';
import { compileStatements } from '../../src/resource/statements/statements.js';
import { peakMbOf } from '../processes.js';
import type { Options } from '../report.js';
import { figure, type Measured } from '../report.js';
import { alternate, middle, pairedRatios } from '../rounds.js';
import type { Stage } from '../stage.js';
import { psqlMs } from './pages.js';

/** A workspace to export, as a login of the replica reads it. */
export interface Exported {
  readonly readerUrl: string;
  readonly workspace: string;
  readonly mac: string;
  readonly wallKey: string;
}

interface Turn {
  readonly wallMs: number;
  readonly peakMb: number;
}

const program = fileURLToPath(new URL('../../bundle/gateway.cjs', import.meta.url));

/** Compares `export` of the work orders with COPY of the same rows, in turns. */
export async function exportCase(stage: Stage, { rounds }: Options): Promise<Measured> {
  return exportAgainstCopy(stage, rounds, '200,000 work orders');
}

export async function exportAgainstCopy(subject: Exported, rounds: number, what: string): Promise<Measured> {
  const sides = [() => exportOnce(subject), () => copyOnce(subject)];
  const [ours = [], theirs = []] = await alternate(sides, rounds, (side) => side());
  const wall = (turns: readonly Turn[]): string => figure(middle(turns, ({ wallMs }) => wallMs / 1000));
  const peakMb = middle(ours, (turn) => turn.peakMb);
  return {
    figures: {
      [`Export of ${what} against COPY: time`]: pairedRatios(ours, theirs, ({ wallMs }) => wallMs),
      [`Export of ${what}: memory`]: peakMb,
    },
    tables: [
      {
        title: `Export of ${what}`,
        note: `Medians of ${rounds} turns each. The start of each program is part of its time; both write their rows.`,
        head: ['', 'wall, s', 'peak memory, MB'],
        rows: [
          ['export', wall(ours), figure(peakMb)],
          ['COPY by psql', wall(theirs), ''],
        ],
      },
    ],
  };
}

async function exportOnce({ readerUrl, workspace, wallKey }: Exported): Promise<Turn> {
  const folder = mkdtempSync(join(tmpdir(), 'gateway-export-'));
  const startedMs = performance.now();
  const args = [program, 'export', '--workspace', workspace, '--resources', 'werkbonnen', '--out', join(folder, 'out')];
  const env = { PATH: process.env.PATH, REPLICA_URLS: readerUrl, WALL_KEY: wallKey, DATA_KEYS: '{}' };
  const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'ignore', 'inherit'] });
  let peakMb = 0;
  const sampling = setInterval(() => {
    peakMb = Math.max(peakMb, peakOf(child.pid as number)); // the kernel keeps the peak while the process lives
  }, 50);
  const [code] = await once(child, 'exit');
  clearInterval(sampling);
  const wallMs = performance.now() - startedMs;
  rmSync(folder, { recursive: true });
  if (code !== 0) throw new Error(`export ended with code ${code}.`);
  return { wallMs, peakMb };
}

/** Returns 0 for a process that has ended. */
function peakOf(pid: number): number {
  try {
    readFileSync(`/proc/${pid}/status`);
    return peakMbOf(pid);
  } catch {
    return 0;
  }
}

/** Runs the same statement; psql writes its rows to a file. */
async function copyOnce(subject: Exported): Promise<Turn> {
  const found = loadResources('').find(({ name }) => name === 'werkbonnen');
  if (found === undefined) throw new Error('There is no list werkbonnen.');
  const text = compileStatements(found).list([]).rows.all.text.replace(/\$\d+/g, 'null');
  const folder = mkdtempSync(join(tmpdir(), 'gateway-copy-'));
  const wallMs = await psqlMs(subject, `copy (${text}) to stdout`, join(folder, 'rows'));
  rmSync(folder, { recursive: true });
  return { wallMs, peakMb: Number.NaN };
}
