import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { TLSSocket } from 'node:tls';
import type pg from 'pg';
import { sqlStateOf } from '../errors.js';
import { primaryReadConnections } from '../postgres/primary.js';
import type { Settings } from '../settings.js';
import { announcedPid, streamOf } from '../wire/wire.js';
import { checkSql, failure, type Item, verdict, warning } from './finding.js';
import type { ServerKind } from './spared.js';

/** Checks that what crosses a network is encrypted, and that the server's certificate is verified. */
export function checkEncryption(client: pg.Client): Item {
  const stream = streamOf(client);
  const { remoteAddress = '' } = stream;
  if (stream instanceof TLSSocket)
    return stream.authorized
      ? verdict('encryption', [], `${stream.getProtocol()}, and the certificate is verified.`)
      : warning('encryption', "The server's certificate is not verified, so another server could take its place.");
  const isLocal = remoteAddress === '' || /^(::ffff:)?127\.|^::1$/.test(remoteAddress);
  if (isLocal) return verdict('encryption', [], 'None: the server is on this machine.');
  return warning('encryption', 'Names of customers cross the network as plain text.');
}

const backendPid = 'select pg_backend_pid() as pid';
/** Rounds in which the other connection may take the server connection of the first, and the time that a round waits for a free one. */
const rounds = 5;
const roundMs = 250;

/**
 * Checks whether a pooler is in between, which announces another process than the one that answers, and whether prepared statements
 * survive it: in transaction mode a pooler before PgBouncer 1.21 loses them. `connect` opens a second connection.
 */
export async function checkPooler(
  client: pg.Client,
  connect: () => Promise<pg.Client>,
  namedStatements: boolean,
): Promise<{ isPooled: boolean; item: Item }> {
  if ((await pidOf(client, { text: backendPid })) === announcedPid(client))
    return { isPooled: false, item: verdict('pooler', [], 'None: the connection ends at PostgreSQL.') };
  if (!namedStatements)
    return { isPooled: true, item: verdict('pooler', [], 'There is one, and statements have no names.') };
  const other = await connect();
  try {
    const keeps = await keepsPrepared(client, other);
    const item = keeps
      ? verdict('pooler', [], 'There is one, and prepared statements survive it.')
      : warning(
          'pooler',
          'There is one, and it loses prepared statements: `serve` runs without them, so that statements are planned each time.',
        );
    return { isPooled: true, item };
  } finally {
    await other.end().catch(() => undefined);
  }
}

/**
 * Prepares a statement, lets the other connection occupy the server connection that has it, and executes it again. A pooler in session mode never
 * lets another client have it.
 */
async function keepsPrepared(client: pg.Client, other: pg.Client): Promise<boolean> {
  const prepared = { name: `check_${randomUUID()}`, text: backendPid };
  for (let round = 0; round < rounds; round++) {
    const before = await pidOf(client, prepared);
    await other.query('begin');
    const occupied = await pidOf(other, { text: backendPid });
    const again = pidOf(client, prepared).then(
      () => true,
      (error) => {
        if (sqlStateOf(error) !== '26000') throw error;
        return false;
      },
    );
    await Promise.race([again.catch(() => undefined), sleep(roundMs)]); // a pool of one connection has none free until the rollback
    await other.query('rollback');
    if (!(await again)) return false;
    if (occupied === before) return true;
  }
  return true;
}

async function pidOf(client: pg.Client, query: { name?: string; text: string }): Promise<number> {
  return (await client.query<{ pid: number }>(query)).rows[0]?.pid as number;
}

interface SessionRow {
  readonly settings: Readonly<Record<string, string>>;
  /** Connections that each allows; null: any number. */
  readonly limits: Readonly<Record<string, number | null>>;
}

/** A setting of the role, as sql/core/001_roles.sql makes it. */
interface SettingRule {
  readonly setting: string;
  readonly kinds: readonly ServerKind[];
  readonly isWrong: (value: string, settings: Settings) => boolean;
  /** Why it matters. */
  readonly effect: string;
  /** Requests fail or writes are lost because of it; else it is a warning. */
  readonly fails?: true;
}

const both = ['replica', 'primary'] as const;
const isOff = (value: string): boolean => value === '0';

const settingRules: readonly SettingRule[] = [
  {
    setting: 'statement_timeout',
    kinds: ['replica'],
    isWrong: (value, { statementTimeoutMs }) => !isOff(value) && Number(value) < statementTimeoutMs,
    effect: 'it ends statements before STATEMENT_TIMEOUT_MS does',
    fails: true,
  },
  {
    setting: 'statement_timeout',
    kinds: ['primary'],
    isWrong: (value, { writeTimeoutMs }) => !isOff(value) && Number(value) < writeTimeoutMs,
    effect: 'it ends writes before WRITE_TIMEOUT_MS does',
    fails: true,
  },
  {
    setting: 'synchronous_commit',
    kinds: ['primary'],
    isWrong: (value) => value === 'off',
    effect: 'a crash of the primary loses writes that were confirmed',
    fails: true,
  },
  { setting: 'statement_timeout', kinds: both, isWrong: isOff, effect: 'a statement without a client runs on' },
  {
    setting: 'lock_timeout',
    kinds: both,
    isWrong: (value, { writeTimeoutMs }) => isOff(value) || Number(value) >= writeTimeoutMs,
    effect: 'a statement that waits for a lock delays others until their deadline',
  },
  {
    setting: 'idle_in_transaction_session_timeout',
    kinds: both,
    isWrong: isOff,
    effect: 'a transaction of a dead gateway keeps its locks',
  },
  {
    setting: 'client_connection_check_interval',
    kinds: both,
    isWrong: isOff,
    effect: 'the statement of a dead gateway runs to its end',
  },
  {
    setting: 'plan_cache_mode',
    kinds: ['replica'],
    isWrong: (value) => value !== 'force_generic_plan',
    effect: 'plans are made again and may change from hour to hour',
  },
];

/** Checks the settings of the role, and, without a pooler, that the server takes the connections of all gateways. */
export async function checkSession(
  client: pg.Client,
  kind: ServerKind,
  settings: Settings,
  isPooled: boolean,
): Promise<Item[]> {
  const row = (await client.query<SessionRow>(checkSql('session'))).rows[0] as SessionRow;
  return [settingsItem(row, kind, settings), ...(isPooled ? [] : [connectionsItem(row, kind, settings)])];
}

function settingsItem({ settings: actual }: SessionRow, kind: ServerKind, settings: Settings): Item {
  const broken = settingRules.filter(
    ({ setting, kinds, isWrong }) => kinds.includes(kind) && isWrong(actual[setting] ?? '0', settings),
  );
  if (broken.length === 0) return verdict('role_settings', [], 'Those of sql/core/001_roles.sql, or such as fit.');
  const faults = broken.map(({ setting, effect }) => `${setting} is ${actual[setting]}: ${effect}`);
  const level = broken.some(({ fails }) => fails) ? 'failed' : 'warning';
  return { level, code: 'role_settings', object: '', detail: `${faults.join('; ')}.` };
}

function connectionsItem({ limits }: SessionRow, kind: ServerKind, settings: Settings): Item {
  const { shortConnections, longConnections, primaryConnections } = settings;
  const pools = kind === 'replica' ? shortConnections + longConnections : primaryConnections + primaryReadConnections;
  const instances = settings.redisUrl === '' ? 1 : settings.instances;
  const need = (pools + 1) * settings.webConcurrency * instances;
  const sum = `${pools} of the pools and a probe, by ${settings.webConcurrency} workers and ${instances} machines`;
  const tooFew = Object.entries(limits).filter(([, limit]) => limit !== null && limit < need);
  if (tooFew.length === 0) return verdict('connections', [], `${need} are needed: ${sum}.`);
  const faults = tooFew.map(([owner, limit]) => `${owner} allows ${limit}`);
  return failure('connections', `${need} are needed, ${sum}; ${faults.join(', ')}.`);
}
