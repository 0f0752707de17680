import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { TLSSocket } from 'node:tls';
import type pg from 'pg';
import { announcedPid, streamOf } from '../db/wire/wire.js';
import { sqlStateOf } from '../errors.js';
import { type Item, verdict, warning } from './finding.js';

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
