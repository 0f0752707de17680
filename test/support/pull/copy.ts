import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import pg from 'pg';
import { runCommand } from '../../../pull/src/command.js';
import { openDisplay } from '../../../pull/src/display.js';
import { projectRoot } from '../../../src/base/paths.js';
import { lateOptimizing } from '../late-optimizing.js';

export interface PullRun {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunningPull {
  readonly child: ChildProcess;
  readonly ended: Promise<PullRun>;
}

const compiled = [process.execPath, ...lateOptimizing, join(projectRoot, 'dist/pull/src/main.js')];
export const installed = [join(projectRoot, 'pull/bin/workspace-data-pull.js')];

export function startPull(args: readonly string[], [program = '', ...first] = compiled): RunningPull {
  const child = spawn(program, [...first, ...args], {
    env: { PATH: process.env.PATH },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let [stdout, stderr] = ['', ''];
  child.stdout.on('data', (bytes: Buffer) => (stdout += bytes.toString()));
  child.stderr.on('data', (bytes: Buffer) => (stderr += bytes.toString()));
  const ended = new Promise<PullRun>((resolve) => child.on('close', (code) => resolve({ code, stdout, stderr })));
  return { child, ended };
}

export async function runPull(args: readonly string[], killMs?: number): Promise<PullRun> {
  const { child, ended } = startPull(args);
  const timer = killMs === undefined ? undefined : setTimeout(() => child.kill('SIGKILL'), killMs);
  const run = await ended;
  clearTimeout(timer);
  return run;
}

/** Runs `pull` in this process, which needs a tenth of the time: its command line, what it prints, and its exit code. */
export async function pullInProcess(args: readonly string[]): Promise<PullRun> {
  let [stdout, stderr] = ['', ''];
  const screen = openDisplay({ out: (text) => (stdout += text), err: (text) => (stderr += text) }, false);
  const code = await runCommand(args, screen, new AbortController().signal, 1);
  return { code, stdout, stderr };
}

export interface PulledCopy {
  readonly to: string;
  sql(...statements: string[]): Promise<Record<string, unknown>[]>;
}

export function duckdbCopy(file: string): PulledCopy {
  return {
    to: file,
    sql: async (...statements) => {
      const instance = await DuckDBInstance.create(file);
      const connection = await instance.connect();
      try {
        let rows: Record<string, unknown>[] = [];
        for (const each of statements)
          rows = (await connection.runAndReadAll(each)).getRowObjectsJson() as Record<string, unknown>[];
        return rows;
      } finally {
        connection.closeSync();
        instance.closeSync();
      }
    },
  };
}

export function postgresCopy(url: string): PulledCopy {
  return {
    to: url,
    sql: async (...statements) => {
      const client = new pg.Client(url);
      await client.connect();
      try {
        await client.query('set search_path = workspace_data');
        let rows: Record<string, unknown>[] = [];
        for (const each of statements) rows = (await client.query(each)).rows as Record<string, unknown>[];
        return rows;
      } finally {
        await client.end();
      }
    },
  };
}

export function exported(folder: string): Record<string, string> {
  mkdirSync(folder, { recursive: true });
  return Object.fromEntries(
    readdirSync(folder)
      .sort()
      .map((name) => [name, readFileSync(join(folder, name), 'utf8')]),
  );
}
