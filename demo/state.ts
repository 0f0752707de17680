import { randomBytes } from 'node:crypto';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Failure } from '../src/cli/command.js';
import type { DemoWorkspace } from './database.js';
import type { DemoOptions } from './options.js';
import type { AppName } from './seed/apps.js';

/**
 * The state that a demo with --dir keeps beside the data. It holds keys and plain tokens, so only the file's owner
 * can read it.
 */
export interface DemoState {
  /** Name of the reference app. */
  readonly app: AppName;
  readonly rows: string;
  /** Key id → base64 of 32 bytes, as DATA_KEYS. */
  readonly keys: Readonly<Record<string, string>>;
  /** Absent until the database is complete, so that the data of an interrupted run is made again. */
  readonly workspaces?: readonly DemoWorkspace[];
}

/** The state kept in the folder, or a new one. Throws Failure when the kept data is of another app or size than asked for. */
export function demoState({ dir, app, rows }: Pick<DemoOptions, 'dir' | 'app' | 'rows'>): DemoState {
  const found = dir === undefined ? undefined : read(join(dir, 'demo.json'));
  const kept = found && { ...found, app: found.app ?? 'first' };
  if (kept?.workspaces === undefined) return { app, rows: rows ?? 'small', keys: kept?.keys ?? newKeys() };
  if (app !== kept.app)
    throw new Failure(`${dir} holds a demo with --app ${kept.app}; name another folder for --app ${app}.`);
  if (rows !== undefined && rows !== kept.rows) {
    throw new Failure(`${dir} holds a demo with --rows ${kept.rows}; name another folder for --rows ${rows}.`);
  }
  return kept;
}

/** Keeps the state in the folder. */
export function keepState(dir: string, state: DemoState): void {
  writeWhole(join(dir, 'demo.json'), state);
}

/** Writes a JSON file of mode 0600, because it holds secrets, in one step: no reader sees it incomplete. */
export function writeWhole(path: string, content: object): void {
  const unfinished = `${path}.${process.pid}.tmp`;
  writeFileSync(unfinished, `${JSON.stringify(content, null, 2)}\n`, { mode: 0o600 });
  renameSync(unfinished, path);
}

function read(path: string): (Omit<DemoState, 'app'> & Partial<Pick<DemoState, 'app'>>) | undefined {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as DemoState;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new Failure(`${path} cannot be used: ${(error as Error).message}`);
  }
}

/** Three keys, as in an app that has rotated its key twice. */
function newKeys(): Record<string, string> {
  return Object.fromEntries(['k1', 'k2', 'k3'].map((id) => [id, randomBytes(32).toString('base64')]));
}
