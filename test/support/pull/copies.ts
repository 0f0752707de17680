import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { type FaultCluster, type FaultGateway, faultCluster } from '../fault-cluster.js';
import { type SyncWriters, syncWriters } from '../sync/writers.js';
import { templateName } from '../template.js';
import { duckdbCopy, exported, type PulledCopy, type PullRun, postgresCopy, runPull } from './copy.js';

export interface PulledCopies {
  readonly setUp: FaultCluster;
  readonly gateway: FaultGateway;
  readonly folder: string;
  readonly workspace: string;
  readonly copies: readonly PulledCopy[];
  usual(base?: string): string[];
  pull(copy: PulledCopy, more?: readonly string[], killMs?: number): Promise<PullRun>;
  /** Compares each copy with a fresh copy; one fresh copy serves several calls while the source does not change. */
  differences(more?: readonly string[], isSourceUnchanged?: boolean): Promise<string[]>;
  writers(): Promise<SyncWriters>;
  stop(): Promise<void>;
}

export async function pulledCopies(): Promise<PulledCopies> {
  const setUp = await faultCluster({ replicas: 1, settings: { max_prepared_transactions: '20' } });
  const folder = await mkdtemp(join(tmpdir(), 'pull-'));
  const stop = async (): Promise<void> => {
    await setUp.stop();
    await rm(folder, { recursive: true, force: true });
  };
  try {
    const gateway = await setUp.gateway({});
    const workspace = setUp.workspaces[1]?.id as string;
    await writeFile(join(folder, 'token'), `${await setUp.token({ workspace: 1 })}\n`);
    await setUp.cluster.primary.query('create database copy');
    const copies = [postgresCopy(setUp.cluster.primary.url('copy')), duckdbCopy(join(folder, 'copy.duckdb'))];
    const usual: PulledCopies['usual'] = (base = gateway.gateway.url) => [
      ...['--base', base],
      ...['--token-file', join(folder, 'token')],
    ];
    const pull: PulledCopies['pull'] = (copy, more = [], killMs?) =>
      runPull([...usual(), '--to', copy.to, ...more], killMs);
    const exportsAfter = async (copy: PulledCopy, more: readonly string[]): Promise<Record<string, string>> => {
      const to = join(folder, 'export');
      const { code, stderr } = await pull(copy, [...more, '--export', to, '--format', 'ndjson']);
      if (code !== 0) throw new Error(stderr);
      const files = exported(to);
      await rm(to, { recursive: true });
      return files;
    };
    let expected: Record<string, string> = {};
    const differences: PulledCopies['differences'] = async (more = [], isSourceUnchanged = false) => {
      await setUp.caughtUp();
      if (!isSourceUnchanged) {
        const fresh = join(folder, 'fresh.duckdb');
        expected = await exportsAfter(duckdbCopy(fresh), []);
        await rm(fresh);
      }
      const found = Object.keys(expected).length < 7 ? ['there are fewer than 7 tables'] : [];
      for (const copy of copies) {
        const files = await exportsAfter(copy, more);
        for (const [name, text] of Object.entries(expected))
          if (!isDeepStrictEqual(linesOf(files[name]), linesOf(text)))
            found.push(`${name} in ${new URL(copy.to, 'file:').protocol}`);
      }
      return found;
    };
    const writers = (): Promise<SyncWriters> => syncWriters(setUp.cluster.primary.url(templateName), workspace, 500);
    return { setUp, gateway, folder, workspace, copies, usual, pull, differences, writers, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

function linesOf(text = ''): object[] {
  const keyOf = (row: object): string => Object.values(row).slice(0, 2).join(' ');
  const rows = text.split('\n').map((line) => JSON.parse(line || '{}') as object);
  return rows.sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
}

/** Counts references of the copy that lead nowhere. */
export async function danglingIn(copy: PulledCopy): Promise<number> {
  const [row] =
    await copy.sql(`select (select count(*) from werkbonnen w where not exists (select 1 from installaties i where i.id = w.installation_id))
      + (select count(*) from installaties i where not exists (select 1 from klanten k where k.id = i.customer_id)) as dangling`);
  return Number(row?.dangling);
}

export const some = (table: string): string =>
  `(select id from app.${table} where workspace_id = $1 order by random() limit 1)`;

export const silentChanges: Readonly<Record<string, string>> = {
  'an hour is deleted': `delete from app.werkbon_uren where id = ${some('werkbon_uren')} returning 1`,
  'an action is deleted': `delete from app.werkbon_handelingen where id = ${some('werkbon_handelingen')} returning 1`,
  'an hour moves to another work order': `update app.werkbon_uren set werkbon_id = ${some('werkbonnen')}
    where id = ${some('werkbon_uren')} returning 1`,
  'an hour changes': `update app.werkbon_uren set medewerker = random()::text where id = ${some('werkbon_uren')} returning 1`,
  'an hour is added': `insert into app.werkbon_uren (id, workspace_id, werkbon_id, medewerker, datum, van, tot, uren)
    values (gen_random_uuid(), $1, ${some('werkbonnen')}, 'Nieuw', '2026-01-01', '08:00', '09:00', 1) returning 1`,
  'a work order changes without updated_at': `update app.werkbonnen set omschrijving = random()::text
    where id = ${some('werkbonnen')} returning 1`,
  // The last ones stay: other changes need work orders.
  'a work order is deleted with its parts': `with gone as (select * from ${some('werkbonnen')} one
      where (select count(*) from app.werkbonnen where workspace_id = $1) > 20),
    a as (delete from app.werkbon_handelingen where werkbon_id in (select id from gone)),
    b as (delete from app.werkbon_uren where werkbon_id in (select id from gone))
    delete from app.werkbonnen where id in (select id from gone) returning 1`,
  'a log entry is deleted': `delete from app.logboeken where id = ${some('logboeken')} returning 1`,
};

const any = (table: string): string => `(select id from ${table} order by random() limit 1)`;
const anyHour =
  '(werkbon_id, position) in (select werkbon_id, position from werkbonnen_uren order by random() limit 1)';
export const damages: Readonly<Record<string, string>> = {
  'texts are overwritten': `update werkbonnen set omschrijving = 'x' where id in (select id from werkbonnen order by random() limit 100)`,
  'a record is lost': `delete from klanten where id = ${any('klanten')}`,
  'a record is added': `insert into installaties (id, customer_id, naam, lmra_verplicht, version, created_at, updated_at, sync_version)
    select gen_random_uuid()::text, customer_id, naam, lmra_verplicht, version, created_at, updated_at, '0000000000000000' from installaties limit 1`,
  'an hour is lost': `delete from werkbonnen_uren where ${anyHour}`,
  'an hour is changed': `update werkbonnen_uren set uren = 99 where ${anyHour}`,
  'an hour without work order is added': `insert into werkbonnen_uren (werkbon_id, position, id, medewerker, datum, van, tot, uren)
    select gen_random_uuid()::text, 1, id, medewerker, datum, van, tot, uren from werkbonnen_uren limit 1`,
  'an hour is moved': `update werkbonnen_uren set werkbon_id = ${any('werkbonnen')}, position = floor(random() * 1000000000) where ${anyHour}`,
  'a version is overwritten': `update klanten set sync_version = '0123456789abcdef' where id = ${any('klanten')}`,
  'a hash is overwritten': `update klanten set sync_hash = 'x' where id = ${any('klanten')}`,
  'the token is overwritten': `update pull_state set since = 'damaged'`,
  'a column is emptied': 'update installaties set omschrijving = null, merk = null',
};
