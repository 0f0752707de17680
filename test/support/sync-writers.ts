import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';

/** Writers of every kind that can mislead a sync, on the primary. */
export interface SyncWriters {
  /** Writes until `pause`, then waits for every open transaction to end. */
  resume(): void;
  pause(): Promise<void>;
  /** Statements that changed rows so far. */
  changes(): number;
}

const serial = `nextval('fault.serial')::text`;
const any = (table: string): string =>
  `(select id from app.${table} where workspace_id = $1 order by random() limit 1)`;
const touch = `update app.werkbonnen set omschrijving = ${serial} where id = ${any('werkbonnen')}`;
const move = `update app.werkbonnen set omschrijving = ${serial}, datum = date '2020-01-01' + (random() * 2000)::int where id = ${any('werkbonnen')}`;
const touchPart = `update app.werkbon_handelingen set resultaat = ${serial} where id = ${any('werkbon_handelingen')}`;
const addPart = `insert into app.werkbon_uren (id, workspace_id, werkbon_id, medewerker, datum, van, tot, uren)
  select gen_random_uuid(), $1, ${any('werkbonnen')}, ${serial}, '2026-01-01', '08:00', '09:00', 1`;
const add = `insert into app.werkbonnen (id, workspace_id, installatie_id, nummer, datum, status, omschrijving)
  select gen_random_uuid(), $1, ${any('installaties')}, 'S', date '2020-01-01' + (random() * 2000)::int, 'gepland', ${serial}`;
const backfill = `update app.werkbonnen set omschrijving = ${serial} where workspace_id = $1 and random() < 0.05`;
const log = `insert into app.logboeken (workspace_id, tijdstip, entiteit, entiteit_id, actie, actor_type) values ($1, clock_timestamp(), 'klant', ${serial}, 'x', 'y')`;

const statements = [touch, touch, move, touchPart, touchPart, addPart, add, log, backfill];
/** Takes rows without parts out, with the id, so that the same id can come back. */
const remove = `delete from app.werkbonnen where id = (select w.id from app.werkbonnen w where w.workspace_id = $1
  and not exists (select from app.werkbon_handelingen h where h.werkbon_id = w.id)
  and not exists (select from app.werkbon_uren u where u.werkbon_id = w.id) order by random() limit 1) returning id`;
const putBack = `insert into app.werkbonnen (id, workspace_id, installatie_id, nummer, datum, status, omschrijving)
  select $2, $1, ${any('installaties')}, 'S', '2024-01-01', 'gepland', ${serial}`;

const maintenance = [
  'vacuum (freeze) app.werkbonnen',
  'vacuum (freeze) app.werkbon_handelingen',
  'vacuum full app.werkbonnen',
  'alter table app.werkbonnen add column filler double precision default random()',
  'alter table app.werkbonnen drop column if exists filler',
];

const pick = <T>(items: readonly T[]): T => items[Math.floor(Math.random() * items.length)] as T;

/** Starts the writers, paused. `longMs` is the length of long transactions. */
export async function syncWriters(url: string, workspace: string, longMs: number): Promise<SyncWriters> {
  let [running, busy, changes, prepared] = [false, 0, 0, 0];
  const client = new pg.Client(url);
  await client.connect();
  await client.query('create sequence if not exists fault.serial');
  await client.end();

  const run = async (writer: pg.Client, text: string, more: unknown[] = []): Promise<pg.QueryResult> => {
    const result = await writer.query(text, [workspace, ...more]);
    changes += result.rowCount ?? 0;
    return result;
  };
  const transactions: ((writer: pg.Client) => Promise<void>)[] = [
    async (writer) => void (await run(writer, pick(statements))),
    async (writer) => {
      await run(writer, pick(statements));
      await writer.query('savepoint a');
      await run(writer, pick(statements));
      await writer.query('savepoint b');
      await run(writer, pick(statements));
      await writer.query(pick(['release a', 'rollback to b', 'rollback to a']));
      await sleep(Math.random() * 50);
    },
    async (writer) => {
      const { rows } = await run(writer, remove);
      if (rows[0] === undefined || Math.random() < 0.4) return;
      await writer.query('commit and chain');
      await sleep(Math.random() * 300);
      await run(writer, putBack, [rows[0].id]);
    },
  ];
  const long = async (writer: pg.Client): Promise<void> => {
    await run(writer, add);
    await run(writer, touchPart);
    await sleep(Math.random() * longMs);
    await writer.query('savepoint late');
    await run(writer, touch);
    await run(writer, log);
  };
  const inTransaction = async (writer: pg.Client, work: (writer: pg.Client) => Promise<void>): Promise<void> => {
    await writer.query('begin');
    await work(writer);
    if (Math.random() < 0.1) {
      const name = `'sync-${++prepared}'`;
      await writer.query(`prepare transaction ${name}`);
      await sleep(Math.random() * longMs);
      await writer.query(`${pick(['commit', 'commit', 'rollback'])} prepared ${name}`);
    } else await writer.query(Math.random() < 0.1 ? 'rollback' : 'commit');
  };
  const loop = async (work: (writer: pg.Client) => Promise<void>, pauseMs: number): Promise<void> => {
    busy++;
    const writer = new pg.Client(url);
    await writer.connect();
    await writer.query(`set lock_timeout = '500ms'`);
    while (running) {
      // A deadlock or a lock that takes too long ends the transaction, as it would end one of the app.
      await work(writer).catch(() => writer.query('rollback'));
      await sleep(Math.random() * pauseMs);
    }
    await writer.end();
    busy--;
  };
  return {
    resume: () => {
      running = true;
      const short = (writer: pg.Client): Promise<void> => inTransaction(writer, pick(transactions));
      for (let i = 0; i < 3; i++) void loop(short, 30);
      for (let i = 0; i < 3; i++) void loop((writer) => inTransaction(writer, long), 100);
      void loop(async (writer) => void (await writer.query(pick(maintenance))), 1500);
    },
    pause: async () => {
      running = false;
      while (busy > 0) await sleep(20);
    },
    changes: () => changes,
  };
}
