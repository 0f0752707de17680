import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { TLSSocket } from 'node:tls';
import type pg from 'pg';
import {
  databaseErrorKind,
  endsConnection,
  helpOf,
  internalError,
  lockNotAvailable,
  noPreparedStatement,
  protocolViolation,
  queryCanceled,
  sqlStateOf,
} from '../base/errors.js';
import { applicationName } from '../postgres/connection.js';
import { type LoginKind, sessionSettings } from '../postgres/wire/session.js';
import { announcedPid, Login, streamOf } from '../postgres/wire/wire.js';
import { failure, faultIf, type Item, titleOf, verdict, warning } from './finding.js';

// The connection of the checks, what its ends mean, and the transactions in which they try statements.

const statementTimeoutMs = 5000;
/** A statement has less time than a look, so that a slow one leaves the connection to the other items. */
const slowMs = 4000;
const slowAdvice =
  'Look at the load of the server and at what the statement waits for, and run ANALYZE; gateway.key_ids() can take a smaller sample.';

/** Connects as the gateway does, with short limits. */
export function connectForCheck(url: string, kind: LoginKind, settings: CheckBounds): Promise<pg.Client> {
  return new Login(sessionSettings(kind, settings)).connect(() => ({
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

/** A lock on a table, a migration in this moment, or a conflict with recovery is at fault: the connection goes on. */
function isOccupied(error: unknown): boolean {
  return (
    [lockNotAvailable, internalError].includes(sqlStateOf(error) ?? '') ||
    (helpOf(error) === 'repeat' && !endsConnection(error))
  );
}

/** The statement took longer than a look may; a server that is not judged is looked at again later. */
function slowItem(item: Item): Item {
  const detail = `${titleOf(item)} takes too long, so it is not judged.`;
  return { ...failure(item.level === 'refused' ? 'connection' : item.code, detail, item.object), advice: slowAdvice };
}

export function isSlow({ advice }: Item): boolean {
  return advice === slowAdvice;
}

/**
 * Reads only and rolls back. A lock makes `object` uncheckable (null: another item says so), within 200 ms, so that it does not look like
 * a slow view. Runs under the name of `serve`. Throws when the connection is lost.
 */
export async function inReadOnlyTransaction(
  client: pg.Client,
  { settings = '', object = '' }: { readonly settings?: string; readonly object?: string | null },
  check: () => Promise<Item[]>,
  refused: (error: pg.DatabaseError) => Item[],
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
        : [failure('connection', `It cannot be checked now: ${(error as Error).message}.`, object)];
    if (/^(08|53|57P|58|$)/.test(sqlStateOf(error) ?? '')) throw error;
    const items = refused(error as pg.DatabaseError);
    return sqlStateOf(error) === queryCanceled ? items.map(slowItem) : items;
  } finally {
    await client.query('rollback').catch(() => undefined); // a lost connection has rolled back
  }
}

/** Names a TLS failure beside the failed connection, which says nothing about certificates. */
export function connectionItems(error: unknown): Item[] {
  const { code = '', message } = error as { code?: string; message: string };
  const reason =
    code === protocolViolation ? `a pooler reports: ${message} (08P01)` : message || code || 'no reason given';
  if (message === 'Query read timeout')
    return [{ ...failure('connection', 'It answers, but not within 5 s, so it is not judged.'), advice: slowAdvice }];
  if (code === queryCanceled)
    return [failure('role_settings', 'statement_timeout of the role ends the statements of the check.')];
  if (/^(28|3D)/.test(code) || (sqlStateOf(error) !== undefined && databaseErrorKind(error) !== 'retry'))
    return [verdict('connection', [`it refuses: ${reason}${code && ` (${code})`}`])];
  const isTls = /CERT|SIGNED|^ERR_(TLS|SSL)|^EPROTO$/.test(code) || /\bSSL\b|\bTLS\b/.test(message);
  const tls = isTls ? [failure('encryption', `TLS fails: ${message}.`)] : [];
  return [...tls, failure('connection', `It cannot be reached now: ${reason}.`)];
}

export function checkEncryption(client: pg.Client): Item {
  const stream = streamOf(client);
  const { remoteAddress = '' } = stream;
  if (stream instanceof TLSSocket)
    return stream.authorized
      ? verdict('encryption', [], `${stream.getProtocol()}, and the certificate is verified.`)
      : warning('encryption', "The server's certificate is not verified, so another server could take its place.");
  const isLocal = remoteAddress === '' || /^(::ffff:)?127\.|^::1$/.test(remoteAddress);
  const faults = faultIf(!isLocal, 'Traffic to PostgreSQL is unencrypted');
  return verdict('encryption', faults, 'None: the server is on this machine.', '', 'warning');
}

const backendPid = 'select pg_backend_pid() as pid';
/** Each may take the server connection of the first, and waits so long for a free one. */
const rounds = 5;
const roundMs = 250;

/** A pooler announces another process than answers; in transaction mode before PgBouncer 1.21 it loses prepared statements. */
export async function checkPooler(
  client: pg.Client,
  connect: () => Promise<pg.Client>,
  namedStatements: boolean,
): Promise<{ isPooled: boolean; item: Item }> {
  if ((await pidOf(client, { text: backendPid })) === announcedPid(client))
    return { isPooled: false, item: verdict('pooler', [], 'None: the connection ends at PostgreSQL.') };
  if (!namedStatements)
    return { isPooled: true, item: verdict('pooler', [], 'There is one, and statements have no names.') };
  const second = await connect();
  try {
    const keeps = await keepsPrepared(client, second);
    const item = keeps
      ? verdict('pooler', [], 'There is one, and prepared statements survive it.')
      : warning(
          'pooler',
          'There is one, and it loses prepared statements: `serve` does without them from its start, so that statements are planned each time.',
        );
    return { isPooled: true, item };
  } finally {
    await second.end().catch(() => undefined);
  }
}

/** Occupies the server connection that has the statement, and executes it again. In session mode no other client gets it. */
async function keepsPrepared(client: pg.Client, second: pg.Client): Promise<boolean> {
  const prepared = { name: `check_${randomUUID()}`, text: backendPid };
  for (let round = 0; round < rounds; round++) {
    const before = await pidOf(client, prepared);
    await second.query('begin');
    const occupied = await pidOf(second, { text: backendPid });
    const again = pidOf(client, prepared).then(
      () => true,
      (error) => {
        if (sqlStateOf(error) !== noPreparedStatement) throw error;
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

async function pidOf(client: pg.Client, query: { name?: string; text: string }): Promise<number> {
  return (await client.query<{ pid: number }>(query)).rows[0]?.pid as number;
}
