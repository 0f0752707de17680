import type { ExecutionContext } from 'ava';
import { Redis } from 'ioredis';
import type pg from 'pg';
import { startCluster } from '../../demo/cluster/cluster.js';
import type { Finding } from '../../src/doctor/finding.js';
import { checkServerLate, inspect } from '../../src/doctor/inspect.js';
import { checkScans } from '../../src/doctor/scans.js';
import { checkServer } from '../../src/doctor/server-checks.js';
import type { CheckResult } from '../../src/postgres/probe.js';
import { loadResources } from '../../src/resource/definition/load.js';
import { startGateway } from '../../src/serve/gateway.js';
import type { Settings } from '../../src/settings.js';
import type { Configuration } from '../support/configurations/configuration.js';
import { functionsOfOwner, leakingViews, moreTables, walledViews } from '../support/configurations/scans.js';
import { wrongServers } from '../support/configurations/servers.js';
import { wrongViews } from '../support/configurations/views.js';
import { wrongWrites } from '../support/configurations/writes.js';
import { redisBinary, startRedis } from '../support/redis.js';
import { eventually, gatewayTest, type TestContext } from '../support/workspace.js';

// Each wrong configuration is made in a real database and must be found, with what to do.

const test = gatewayTest();
const resources = loadResources('');

/** The data set has three values that cannot be decoded, and lists that hold a text beside objects, on purpose. */
const onPurpose: Readonly<Partial<Record<Finding['code'], RegExp>>> = {
  values:
    /^([/]fields[/](adres[/]group[/]straat|adres[/]group[/]plaats|kvkNummer): 1 of \d+ values [^;]*; )+the definition is config[/]resources[/]klanten[.]json[.]$/,
  shown:
    /^[/]fields[/]handelingen[/]items[/]fields[/]gegevens leaves out texts in \d+ of \d+ records; the definition is config[/]resources[/]werkbonnen[.]json[.]$/,
};

async function wrong(
  t: ExecutionContext<TestContext>,
  settings: Partial<Settings> = {},
  thorough = true,
  inspected = resources,
): Promise<Finding[]> {
  const { database } = t.context;
  await database.caughtUp();
  const asked = { ...database.settings, ...settings };
  const { findings } = await inspect(asked, inspected, thorough ? 'all' : 'start');
  return findings.filter(
    ({ level, code, detail }) => level !== 'ok' && !(level === 'warning' && onPurpose[code]?.test(detail)),
  );
}

test.serial('check finds nothing wrong with a migrated database', async (t) => {
  t.deepEqual(await wrong(t), []);
});

for (const [
  name,
  { change, undo, settings, clockMs = 0, level, code, detail, also = [], thorough = false, resource = 'klanten' },
] of Object.entries({ ...wrongServers, ...wrongViews, ...wrongWrites })) {
  test.serial(`check finds that ${name}: ${level}`, async (t) => {
    const { database } = t.context;
    if (change) await database.primary.query(change(database));
    const { now } = Date;
    Date.now = () => now() + clockMs;
    try {
      const inspected = thorough ? resources.filter(({ name }) => name === resource) : resources;
      const findings = await wrong(t, settings?.(database), thorough, inspected);
      const follows: readonly string[] = thorough ? [...also, 'privileges', 'migrated'] : also; // of the other resources
      const meant = findings.filter((finding) => finding.level === level && finding.code === code);
      t.true(
        meant.some((finding) => detail.test(finding.detail)),
        JSON.stringify(findings, null, 2),
      );
      t.true(findings.every(({ advice }) => advice !== ''));
      const others = findings.filter((finding) => finding.code !== code && !follows.includes(finding.code));
      t.deepEqual(others, []);
    } finally {
      Date.now = now;
      if (undo) await database.primary.query(undo(database));
    }
  });
}

test.serial('each scan of a view must compare the workspace, wherever it stands', async (t) => {
  const { primary } = t.context.database;
  const views = Object.entries({ ...leakingViews, ...walledViews }).map(([title, text], i) => ({
    title,
    text,
    name: `trial.v${i}`,
  }));
  await primary.query(`create schema trial; ${moreTables}; ${functionsOfOwner}`);
  try {
    for (const { text, name } of views) await primary.query(`create view ${name} as ${text}`);
    const items = await checkScans(
      primary,
      views.map(({ name }) => name),
    );
    const ofLevel = (level: string): string[] =>
      views
        .filter(({ name }) => items.some((item) => item.object === name && item.level === level))
        .map(({ title }) => title);
    t.deepEqual(ofLevel('refused'), Object.keys(leakingViews));
    t.deepEqual(ofLevel('ok'), Object.keys(walledViews));
  } finally {
    await primary.query('drop schema trial, "Trial.s" cascade; drop table app.notities, app.regels, app.landen');
  }
});

test.serial('check finds nothing wrong where the database quotes all identifiers', async (t) => {
  const { name, primary } = t.context.database;
  await primary.query(`alter database ${name} set quote_all_identifiers = on`);
  try {
    t.deepEqual(await wrong(t), []);
  } finally {
    await primary.query(`alter database ${name} reset quote_all_identifiers`);
  }
});

test.serial('serve does not start with a refused configuration, and says what is wrong', async (t) => {
  const { database } = t.context;
  const { change, undo } = wrongViews['the wall of a view is gone'] as Configuration;
  await database.primary.query(change?.(database) as string);
  await database.caughtUp();
  const error = await t.throwsAsync(startGateway(database.settings));
  t.regex(error?.message ?? '', /migrated klanten: changed since `migrate` made them: the views of gateway\/klanten/);
  await database.primary.query(undo?.(database) as string);
});

test.serial('a locked table refuses no start: the replica is checked again before its first use', async (t) => {
  const { database } = t.context;
  const { primary, settings } = database;
  const again = (): Promise<CheckResult> =>
    checkServerLate('replica', settings.replicaUrls, { settings, resources, system: undefined });
  try {
    for (const [table, objects, before] of [
      ['app.klanten', ['gateway.key_ids()', 'gateway.klanten'], ''],
      ['gateway.api_tokens', [''], ''],
      ['gateway.api_tokens', [''], 'grant update (koudemiddel) on gateway.installaties_write to gateway_reader'],
    ] as const) {
      if (before !== '') await primary.query(before);
      await primary.query(`begin; lock table ${table} in access exclusive mode; select pg_switch_wal()`);
      await eventually(t, 'the replica has the lock', async () => {
        const held = `select from pg_locks where mode = 'AccessExclusiveLock' and relation = $1::regclass`;
        return (await database.replica.query(held, [table])).rows.length > 0;
      });
      const { findings, unchecked, uncheckedPrimaries } = await inspect(settings, resources);
      const wrongs = findings.filter(({ level }) => level !== 'ok');
      const locked = wrongs.filter(({ level, code, where }) => {
        return level === 'failed' && code === 'connection' && where.startsWith('replica');
      });
      const lockedObjects = locked.map(({ object }) => object);
      t.deepEqual(lockedObjects, objects);
      t.true(locked.every(({ detail }) => /lock timeout|A lock/.test(detail)));
      const others = wrongs.filter((each) => !locked.includes(each)).map(({ code }) => code);
      t.deepEqual(others, before === '' ? [] : ['privileges']);
      t.deepEqual([[...unchecked.keys()], [...uncheckedPrimaries.keys()]], [[0], []]);
      const views = objects.filter((object) => object !== '');
      const hidden = { refusal: views.length > 0 ? null : unchecked.get(0)?.refusal, uncheckedViews: new Set(views) };
      t.deepEqual(unchecked.get(0), hidden as CheckResult);
      const refusal = before === '' ? /connection: .*lock timeout/ : /privileges gateway_reader: it may update/;
      const { refusal: found, uncheckedViews } = await again();
      if (views.length === 0) t.regex(found ?? '', refusal);
      else t.deepEqual([found, [...uncheckedViews]], [null, views]);
      await primary.query('rollback');
      await database.caughtUp();
      // An abort is flushed some time later, and then ends the lock on the replica.
      if (before === '') await eventually(t, 'the end of the lock', async () => (await again()).refusal === null);
    }
  } finally {
    await primary.query('rollback');
    await primary.query('revoke update (koudemiddel) on gateway.installaties_write from gateway_reader');
  }
});

test.serial('a primary that was away at the start is checked as the replicas are before its first use', async (t) => {
  const { database } = t.context;
  const { settings } = database;
  const away = { ...settings, primaryUrls: 'postgres://gateway_writer@127.0.0.1:1/app' };
  const { unchecked, uncheckedPrimaries, system } = await inspect(away, resources);
  t.deepEqual([[...unchecked.keys()], [...uncheckedPrimaries.keys()]], [[], [0]]);
  const refusal = async (): Promise<string | null> =>
    (await checkServerLate('primary', settings.primaryUrls, { settings, resources, system })).refusal;
  t.is(await refusal(), null);
  const { change, undo } = wrongWrites['the writer may change a column of the app'] as Configuration;
  await database.primary.query(change?.(database) as string);
  try {
    t.regex((await refusal()) ?? '', /^check refuses it: write view .*may update koudemiddel/);
  } finally {
    await database.primary.query(undo?.(database) as string);
  }
  const { refusal: reason } = await checkServerLate('primary', away.primaryUrls, { settings, resources, system });
  t.regex(reason ?? '', /^check refuses it: connection: It cannot be reached now: /);
});

test.serial('check finds a replica whose replay is paused, or ends statements early', async (t) => {
  const { replica, settings } = t.context.database;
  await replica.query('select pg_wal_replay_pause()');
  try {
    const { findings } = await inspect(settings, resources);
    t.like(
      findings.find(({ code }) => code === 'standby'),
      { level: 'failed', detail: 'Replay is paused, so its data grows older until it serves no reads.' },
    );
  } finally {
    await replica.query('select pg_wal_replay_resume()');
  }
  const levelWhere = async (conflictDelayMs: number, feedback: 'on' | 'off'): Promise<string | undefined> => {
    const query = (text: string, values: unknown[]) =>
      replica.query(
        text
          .replace("current_setting('hot_standby_feedback')", `'${feedback}'`)
          .replace("(of->>'max_standby_streaming_delay')::integer", `${conflictDelayMs}`),
        values,
      );
    const given = { settings: { ...settings, statementTimeoutMs: 2000 }, resources };
    const { items } = await checkServer({ query } as unknown as pg.Client, 'replica', given, false);
    return items.find(({ code }) => code === 'standby')?.level;
  };
  t.deepEqual(
    [
      await levelWhere(1999, 'off'),
      await levelWhere(1999, 'on'),
      await levelWhere(2000, 'off'),
      await levelWhere(-1, 'off'),
    ],
    ['warning', 'ok', 'ok', 'ok'],
  );
});

test.serial('check finds that a replica belongs to another cluster, also without the primary', async (t) => {
  const { replicaUrls } = t.context.database.settings;
  const other = await startCluster({ replicas: 0 });
  try {
    const settings = { replicaUrls: `${replicaUrls} ${other.primary.url()}` };
    const [withPrimary, without] = [
      await wrong(t, settings, false),
      await wrong(t, { ...settings, primaryUrls: '' }, false),
    ];
    const ofCluster = ({ code }: Finding): boolean => code === 'cluster';
    t.is(withPrimary.find(ofCluster)?.level, 'failed');
    t.regex(without.find(ofCluster)?.detail ?? '', /^replica 2: another cluster than replica 1\.$/);
    t.is(without.find(ofCluster)?.level, 'refused');
  } finally {
    await other.stop();
  }
});

const redisTest = redisBinary === null ? test.serial.skip : test.serial;
const withoutRedis = redisBinary === null ? ' (skipped: no redis-server; apt-get install redis-server)' : '';
redisTest(`check logs in to Redis and says that a password is missing or wrong${withoutRedis}`, async (t) => {
  const redis = await startRedis();
  const admin = new Redis(redis.url);
  const ofRedis = async (redisUrl: string): Promise<string | undefined> =>
    (await wrong(t, { redisUrl }, true, [])).find(({ code }) => code === 'redis')?.detail;
  try {
    t.is(await ofRedis(redis.url), undefined);
    await admin.config('SET', 'requirepass', 'secret');
    t.regex((await ofRedis(redis.url)) ?? '', /NOAUTH/);
    t.regex((await ofRedis(redis.url.replace('//', '//:wrong@'))) ?? '', /WRONGPASS/);
    t.is(await ofRedis(redis.url.replace('//', '//:secret@')), undefined);
    await admin.call('ACL', 'SETUSER', 'gateway', 'on', '>secret', '~other:*', '+@all');
    t.regex((await ofRedis(redis.url.replace('//', '//gateway:secret@'))) ?? '', /key/);
    await admin.call('ACL', 'SETUSER', 'gateway', '~gateway:*');
    t.is(await ofRedis(redis.url.replace('//', '//gateway:secret@')), undefined);
    await admin.call('REPLICAOF', '127.0.0.1', '1');
    t.regex((await ofRedis(redis.url.replace('//', '//gateway:secret@'))) ?? '', /READONLY/);
  } finally {
    admin.disconnect();
    await redis.stop();
  }
});

test.serial(
  'check leaves nothing behind: every change above is undone, and its own writes were rolled back',
  async (t) => {
    const { primary } = t.context.database;
    const stored = async (): Promise<unknown> =>
      (
        await primary.query(
          `select (select sum(version) from app.installaties), (select count(*) from app.installaties),
           (select count(*) from app.logboeken), (select count(*) from gateway.idempotency)`,
        )
      ).rows;
    const before = await stored();
    t.deepEqual(await wrong(t), []);
    t.deepEqual(await stored(), before);
  },
);
