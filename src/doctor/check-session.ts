import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { TLSSocket } from 'node:tls';
import type pg from 'pg';
import { applicationName } from '../postgres/connection.js';
import {
  endsConnection,
  getDatabaseErrorKind,
  getHelp,
  getSqlState,
  internalError,
  lockNotAvailable,
  noPreparedStatement,
  protocolViolation,
  queryCanceled,
} from '../postgres/database-errors.js';
import { type LoginKind, listSessionSettings } from '../postgres/wire/session.js';
import { getAnnouncedPid, getStream, Login } from '../postgres/wire/wire.js';
import { getTitle, type Item, makeItem } from './finding.js';

// The connection of the checks, the meaning of its ends, and the transactions in which checks try statements.

const statementTimeoutMs = 5000;
/** A statement has less time than a look, so that a slow one leaves the connection to the other items. */
const slowMs = 4000;
const slowAdvice =
  'Look at the load of the server and at what the statement waits for, and run ANALYZE; gateway.key_ids() can take a smaller sample.';

/** Connects as the gateway does, with short limits. */
export function connectForCheck(url: string, kind: LoginKind, settings: CheckBounds): Promise<pg.Client> {
  return new Login(listSessionSettings(kind, settings)).connect(() => ({
    connectionString: url,
    connectionTimeoutMillis: settings.connectTimeoutMs,
    query_timeout: statementTimeoutMs,
    application_name: 'gateway-check',
  }));
}

export interface CheckBounds {
  readonly connectTimeoutMs: number;
  readonly statementTimeoutMs: number;
  readonly writeTimeoutMs: number;
}

/** Recognizes a lock on a table, a running migration, or a conflict with recovery: the connection goes on. */
function isOccupied(error: unknown): boolean {
  return (
    [lockNotAvailable, internalError].includes(getSqlState(error) ?? '') ||
    (getHelp(error) === 'repeat' && !endsConnection(error))
  );
}

/** Marks an item whose statement exceeded its time; a server that is not judged is looked at again later. */
function makeSlowItem(item: Item): Item {
  const code = item.level === 'refused' ? 'connection' : item.code;
  const detail = `${getTitle(item)} takes too long, so it is not judged.`;
  return { ...makeItem('failed', code, detail, item.object), advice: slowAdvice };
}

/** Only items that were not judged in time have this advice. */
export function isSlow({ advice }: Item): boolean {
  return advice === slowAdvice;
}

/**
 * Only reads, and rolls back. A lock makes `object` uncheckable (null: another item says so), within 200 ms, so that it does not look like
 * a slow view. Runs under the name of `serve`. Throws when the connection is lost.
 */
export async function runReadOnly(
  client: pg.Client,
  { settings = '', object = '' }: { readonly settings?: string; readonly object?: string | null },
  check: () => Promise<Item[]>,
  describeRefusal: (error: pg.DatabaseError) => Item[],
): Promise<Item[]> {
  try {
    await client.query(
      `begin read only; set local statement_timeout = ${slowMs}; set local lock_timeout = '200ms'; set local application_name = '${applicationName}'; ${settings}`,
    );
    return await check();
  } catch (error) {
    if (isOccupied(error))
      return object === null
        ? []
        : [makeItem('failed', 'connection', `It cannot be checked now: ${(error as Error).message}.`, object)];
    if (/^(08|53|57P|58|$)/.test(getSqlState(error) ?? '')) throw error;
    const items = describeRefusal(error as pg.DatabaseError);
    return getSqlState(error) === queryCanceled ? items.map(makeSlowItem) : items;
  } finally {
    await client.query('rollback').catch(() => undefined); // a lost connection has rolled back
  }
}

/** Names a TLS failure beside the failed connection, which says nothing about certificates. */
export function describeConnectionError(error: unknown): Item[] {
  const { code = '', message } = error as { code?: string; message: string };
  const reason =
    code === protocolViolation ? `a pooler reports: ${message} (08P01)` : message || code || 'no reason given';
  const late = 'It answers, but not within 5 s, so it is not judged.';
  if (message === 'Query read timeout')
    return [
      {
        ...makeItem('failed', 'connection', late),
        advice: slowAdvice,
      },
    ];
  if (code === queryCanceled)
    return [makeItem('failed', 'role_settings', 'statement_timeout of the role ends the statements of the check.')];
  if (/^(28|3D)/.test(code) || (getSqlState(error) !== undefined && getDatabaseErrorKind(error) !== 'retry'))
    return [makeItem('refused', 'connection', `it refuses: ${reason}${code && ` (${code})`}.`)];
  const isTls = /CERT|SIGNED|^ERR_(TLS|SSL)|^EPROTO$/.test(code) || /\bSSL\b|\bTLS\b/.test(message);
  const tls = isTls ? [makeItem('failed', 'encryption', `TLS fails: ${message}.`)] : [];
  return [...tls, makeItem('failed', 'connection', `It cannot be reached now: ${reason}.`)];
}

export function checkEncryption(client: pg.Client): Item {
  const stream = getStream(client);
  const { remoteAddress = '' } = stream;
  if (stream instanceof TLSSocket)
    return stream.authorized
      ? makeItem('ok', 'encryption', `${stream.getProtocol()}, and the certificate is verified.`)
      : makeItem(
          'warning',
          'encryption',
          "The server's certificate is not verified, so another server could take its place.",
        );
  const isLocal = remoteAddress === '' || /^(::ffff:)?127\.|^::1$/.test(remoteAddress);
  return isLocal
    ? makeItem('ok', 'encryption', 'None: the server is on this machine.')
    : makeItem('warning', 'encryption', 'Traffic to PostgreSQL is unencrypted.');
}

const backendPid = 'select pg_backend_pid() as pid';
/** Each round may take the server connection of the first client, and waits this long for a free one. */
const rounds = 5;
const roundMs = 250;

const losesPrepared =
  'There is one, and it loses prepared statements: `serve` does without them from its start, so that statements are planned each time.';

/** A pooler announces another process than answers; in transaction mode before PgBouncer 1.21 it loses prepared statements. */
export async function checkPooler(
  client: pg.Client,
  connect: () => Promise<pg.Client>,
  namedStatements: boolean,
): Promise<{ isPooled: boolean; item: Item }> {
  if ((await readPid(client, { text: backendPid })) === getAnnouncedPid(client))
    return { isPooled: false, item: makeItem('ok', 'pooler', 'None: the connection ends at PostgreSQL.') };
  if (!namedStatements)
    return { isPooled: true, item: makeItem('ok', 'pooler', 'There is one, and statements have no names.') };
  const second = await connect();
  try {
    const keeps = await keepsPrepared(client, second);
    const whenKept = 'There is one, and prepared statements survive it.';
    const item = keeps ? makeItem('ok', 'pooler', whenKept) : makeItem('warning', 'pooler', losesPrepared);
    return { isPooled: true, item };
  } finally {
    await second.end().catch(() => undefined);
  }
}

/** Occupies the server connection that has the statement, and executes it again. In session mode no other client gets it. */
async function keepsPrepared(client: pg.Client, second: pg.Client): Promise<boolean> {
  const prepared = { name: `check_${randomUUID()}`, text: backendPid };
  for (let round = 0; round < rounds; round++) {
    const before = await readPid(client, prepared);
    await second.query('begin');
    const occupied = await readPid(second, { text: backendPid });
    const again = readPid(client, prepared).then(
      () => true,
      (error) => {
        if (getSqlState(error) !== noPreparedStatement) throw error;
        return false;
      },
    );
    await Promise.race([again.catch(() => undefined), sleep(roundMs)]); // a pool of one connection has none free until the rollback
    await second.query('rollback');
    if (!(await again)) return false;
    if (occupied === before) return true;
  }
  return true;
}

async function readPid(client: pg.Client, query: { name?: string; text: string }): Promise<number> {
  return (await client.query<{ pid: number }>(query)).rows[0]?.pid as number;
}
