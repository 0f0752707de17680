import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';

export interface SyncWriters {
  resume(): void;
  pause(): Promise<void>;
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
const touchInstallation = `update app.installaties set omschrijving = ${serial} where id = ${any('installaties')}`;
const addInstallation = `insert into app.installaties (id, workspace_id, klant_id, naam, omschrijving)
  select gen_random_uuid(), $1, ${any('klanten')}, 'S', ${serial}`;
/** The country is stored as base64. */
const country = `encode(convert_to(${serial}, 'UTF8'), 'base64')`;
const touchCustomer = `update app.klanten set land = ${country} where id = ${any('klanten')}`;
const addCustomer = `insert into app.klanten (id, workspace_id, land) select gen_random_uuid(), $1, ${country}`;
const log = `insert into app.logboeken (workspace_id, tijdstip, entiteit, entiteit_id, actie, actor_type) values ($1, clock_timestamp(), 'klant', ${serial}, 'x', 'y')`;

const statements = [
  ...[touch, touch, move, touchPart, touchPart, addPart, add, log, backfill],
  ...[touchInstallation, addInstallation, touchCustomer, addCustomer],
];
/** Most rows of a table change at once, except those that a transaction holds. */
const large = [
  ['werkbonnen', `omschrijving = ${serial}`],
  ['werkbon_handelingen', `resultaat = ${serial}`],
  ['werkbon_uren', `medewerker = ${serial}`],
  ['installaties', `omschrijving = ${serial}`],
  ['klanten', `land = ${country}`],
].map(
  ([table, change]) => `update app.${table} set ${change}
    where id in (select id from app.${table} where workspace_id = $1 and random() < 0.7 order by id for no key update skip locked)`,
);
/** Takes a row out that no other needs, and puts its id back. */
interface Removal {
  readonly remove: string;
  readonly putBack: string;
}

const removal = (
  table: string,
  uses: readonly (readonly [table: string, column: string])[],
  putBack: string,
): Removal => ({
  remove: `delete from app.${table} where id = (select r.id from app.${table} r where r.workspace_id = $1
    ${uses.map(([other, column]) => `and not exists (select from app.${other} u where u.${column} = r.id)`).join(' ')}
    order by random() limit 1) returning id`,
  putBack,
});
const removals = [
  removal(
    'werkbonnen',
    [
      ['werkbon_handelingen', 'werkbon_id'],
      ['werkbon_uren', 'werkbon_id'],
    ],
    add.replace('gen_random_uuid()', '$2'),
  ),
  removal('installaties', [['werkbonnen', 'installatie_id']], addInstallation.replace('gen_random_uuid()', '$2')),
  removal('klanten', [['installaties', 'klant_id']], addCustomer.replace('gen_random_uuid()', '$2')),
];

const maintenance = (file: string): readonly (readonly string[])[] => [
  ['vacuum (freeze) app.werkbonnen'],
  ['vacuum (freeze) app.werkbon_handelingen'],
  ['vacuum (freeze) app.installaties', 'vacuum (freeze) app.klanten'],
  ['vacuum full app.werkbonnen'],
  ['vacuum full app.klanten'],
  ['alter table app.werkbonnen add column if not exists filler double precision default random()'],
  ['alter table app.werkbonnen drop column if exists filler'],
  [
    'begin',
    'lock table app.werkbon_uren in access exclusive mode',
    `copy (select id, workspace_id, werkbon_id, case when random() < 0.1 then ${serial} else medewerker end, datum, van, tot, uren
      from app.werkbon_uren) to '${file}'`,
    'truncate app.werkbon_uren',
    `copy app.werkbon_uren from '${file}' (freeze)`,
    'commit',
  ],
];

const pick = <T>(items: readonly T[]): T => items[Math.floor(Math.random() * items.length)] as T;

type Run = (writer: pg.Client, text: string, more?: unknown[]) => Promise<pg.QueryResult>;

/** Some transactions end at once, and one stays open for up to `longMs`. */
function transactionsOf(run: Run, longMs: number) {
  const short: ((writer: pg.Client) => Promise<void>)[] = [
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
      const { remove, putBack } = pick(removals);
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
  return { short, long };
}

/** Starts the writers, paused. `longMs` is the length of long transactions, `largeMs` the pause between large backfills. */
export async function syncWriters(
  url: string,
  workspace: string,
  longMs: number,
  largeMs: number | null = null,
): Promise<SyncWriters> {
  let [running, busy, changes, prepared, turn] = [false, 0, 0, 0, 0];
  const client = new pg.Client(url);
  await client.connect();
  await client.query('create sequence if not exists fault.serial');
  const { rows: settings } = await client.query<{ data_directory: string }>('show data_directory');
  const upkeep = maintenance(`${settings[0]?.data_directory}/sync-writers.copy`);
  await client.end();

  const run = async (writer: pg.Client, text: string, more: unknown[] = []): Promise<pg.QueryResult> => {
    const result = await writer.query(text, [workspace, ...more]);
    changes += result.rowCount ?? 0;
    return result;
  };
  const { short, long } = transactionsOf(run, longMs);
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
      const oneOfShort = (writer: pg.Client): Promise<void> => inTransaction(writer, pick(short));
      for (let i = 0; i < 3; i++) void loop(oneOfShort, 30);
      for (let i = 0; i < 3; i++) void loop((writer) => inTransaction(writer, long), 100);
      void loop(async (writer) => {
        for (const statement of upkeep[turn++ % upkeep.length] ?? []) await writer.query(statement);
      }, 1500);
      if (largeMs !== null) void loop(async (writer) => void (await run(writer, pick(large))), largeMs);
    },
    pause: async () => {
      running = false;
      while (busy > 0) await sleep(20);
    },
    changes: () => changes,
  };
}
