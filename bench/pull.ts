import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runToEnd } from './child.js';
import { figure, type Table } from './result.js';
import { rowsOf, type Stage } from './stage.js';

const main = new URL('../pull/main.js', import.meta.url);
const database = 'bench_pull';

/** The JSON line that `pull` prints for a pass. */
interface PassLine {
  readonly records: number;
  readonly deleted: number;
  readonly added: number;
  readonly seconds: number;
}

/** `pull` of all work orders into a database and into a folder, then again after some have changed. */
export async function pullTable(stage: Stage, change: () => Promise<void>, changed: number): Promise<Table> {
  const folder = mkdtempSync(join(tmpdir(), 'gateway-bench-pull-'));
  const tokenFile = join(folder, 'token');
  writeFileSync(tokenFile, stage.token);
  const pull = async (to: string): Promise<PassLine> => {
    const places = ['--base', stage.origin, '--token-file', tokenFile, '--to', to];
    return JSON.parse(await runToEnd(main, [...places, '--resources', 'werkbonnen'], {})) as PassLine;
  };
  const drop = `drop database if exists ${database}`;
  await rowsOf(stage.primaryUrl, drop);
  await rowsOf(stage.primaryUrl, `create database ${database}`);
  try {
    const url = new URL(stage.primaryUrl);
    url.pathname = database;
    const places = { PostgreSQL: url.href, 'a folder': join(folder, 'copy') };
    const firsts: PassLine[] = [];
    for (const to of Object.values(places)) firsts.push(await pull(to));
    await change();
    const rows: string[][] = [];
    for (const [i, [name, to]] of Object.entries(places).entries()) {
      const { records, seconds } = firsts[i] as PassLine;
      let again = await pull(to);
      // The replica replays the changes meanwhile.
      for (let tries = 0; again.records < changed && tries < 10; tries++) again = await pull(to);
      if (again.records !== changed) throw new Error(`pull into ${name} read ${again.records} records, not ${changed}`);
      rows.push([name, figure(seconds), figure(records / seconds), figure(again.seconds)]);
    }
    const note = `\`pull\` of the 200,000 work orders, in pages of 1,000, into a database of the primary and into a folder: the first pass, and a pass after ${changed} of them changed. Each pass ends with the comparison of the digests.`;
    return { title: 'pull', note, head: ['into', 'everything, s', 'records/s', `${changed} changes, s`], rows };
  } finally {
    await rowsOf(stage.primaryUrl, drop);
    rmSync(folder, { recursive: true, force: true });
  }
}
