import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { renameSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { type Binaries, runAs, serverEnv } from './binaries.js';
import { passwordFile } from './passwords.js';
import { endAll } from './processes.js';
import type { Reaper } from './reaper-link.js';

const initMsMax = 60_000;

/** Makes a new, empty database cluster. It gets the name `dir` when it is complete, so a crash leaves no incomplete one there. */
export async function initialize(dir: string, binaries: Binaries, reaper: Reaper): Promise<void> {
  const making = `${dir}.making`;
  let output = '';
  // C.UTF-8 sorts alike on every machine; where the system does not know it, C does too.
  for (const locale of ['C.UTF-8', 'C']) {
    rmSync(making, { recursive: true, force: true });
    reaper.tell({ started: making });
    const run = await runInitdb(making, locale, binaries);
    reaper.tell({ stopped: making });
    output = run.output;
    if (run.ok) return renameSync(making, dir);
    if (!/invalid locale/.test(output)) break;
  }
  const accessDenied = binaries.account && /Permission denied/.test(output);
  const advice = accessDenied
    ? ` (PostgreSQL runs as ${binaries.account?.name}, which may have no way in: name another folder)`
    : '';
  throw new Error(`initdb failed for ${dir}${advice}: ${output.slice(-600).trim()}`);
}

interface Run {
  readonly ok: boolean;
  readonly output: string;
}

async function runInitdb(dir: string, locale: string, binaries: Binaries): Promise<Run> {
  const { initdb, account } = binaries;
  const login = ['-U', 'postgres', '-A', 'scram-sha-256', `--pwfile=${passwordFile(dirname(dir))}`];
  const args = ['-D', dir, ...login, '-E', 'UTF8', `--locale=${locale}`, '--no-sync'];
  const options = { ...runAs(account), env: serverEnv, cwd: dirname(dir), detached: true };
  const child = spawn(initdb, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      output += chunk;
    });
  }
  const limit = setTimeout(() => {
    output += `no end in ${initMsMax / 1000} s`;
    void endAll(dir, 0);
  }, initMsMax);
  const [result] = await once(child, 'close').catch((fault: Error) => [fault.message]);
  clearTimeout(limit);
  return { ok: result === 0, output: typeof result === 'string' ? output + result : output };
}
