import { spawn, spawnSync } from 'node:child_process';
import { loadResources } from '../src/definition/load.js';
import { compileStatements } from '../src/definition/statements.js';
import type { Stage } from './stage.js';

const resources = loadResources('');

/** Whether there is a psql to compare with. */
export function hasPsql(): boolean {
  return spawnSync('psql', ['--version']).status === 0;
}

/** Wall time, in milliseconds, of a psql process that copies the first rows of a list out of the gateway's view. */
export async function copyMs(stage: Stage, resource: string, rows: number): Promise<number> {
  return psqlMs(stage, `copy (${selectText(stage, resource, rows)}) to stdout`);
}

/** Wall time of a psql process that does nothing: the part of the above that start and connection take. */
export async function psqlStartMs(stage: Stage): Promise<number> {
  return psqlMs(stage, 'select 1');
}

/** The gateway's own statement with its values in it: the same columns, rows and order. */
function selectText(stage: Stage, name: string, rows: number): string {
  const resource = resources.find((each) => each.name === name);
  const statement = resource && compileStatements(resource).list([]).rows.all;
  if (statement === undefined) throw new Error(`There is no list ${name}.`);
  return statement.text.replace('$1', `'${stage.workspace}'`).replace('$2', String(rows));
}

/** Wall time, in milliseconds, of a psql process that runs the command as the reader of the workspace and drops its output. */
export async function psqlMs(stage: Pick<Stage, 'readerUrl' | 'workspace'>, command: string): Promise<number> {
  const url = new URL(stage.readerUrl);
  // In the environment: every user of the machine can read a process's arguments.
  const PGPASSWORD = url.password;
  url.password = '';
  const startedMs = performance.now();
  const psql = spawn('psql', ['-X', '-q', '-c', command, url.href], {
    env: { ...process.env, PGOPTIONS: `-c gateway.workspace_id=${stage.workspace}`, PGPASSWORD },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const code = await new Promise<number | null>((resolve) => psql.once('close', resolve));
  const wallMs = performance.now() - startedMs;
  if (code !== 0) throw new Error(`psql ended with code ${code}.`);
  return wallMs;
}
