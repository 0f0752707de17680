import type pg from 'pg';
import { parseKeyring } from '../projection/keyring.js';
import type { Settings } from '../settings.js';
import { checkSql, failure, faultIf, type Item, verdict, warning } from './finding.js';
import { attempt, isOccupied, queryCanceled } from './views.js';

/** The gateway's clock decides expiry of tokens and Data-As-Of. */
const clockDifferenceMaxMs = 2000;

interface ServerRow {
  readonly in_recovery: boolean;
  readonly read_only: boolean;
  readonly paused: boolean;
  readonly feedback: boolean;
  /** -1: without end. */
  readonly conflict_delay_ms: number;
  readonly encoding: string;
  readonly bytea_output: string;
  readonly extra_float_digits: number;
  readonly system_identifier: string;
  readonly clock_ms: string;
}

/** Checks recovery, session settings and clock; row serializers rely on the session settings. */
export async function checkServer(
  client: pg.Client,
  kind: 'replica' | 'primary',
  { statementTimeoutMs }: Pick<Settings, 'statementTimeoutMs'>,
): Promise<{ systemIdentifier: string; items: Item[] }> {
  const asked = Date.now();
  const server = (await client.query<ServerRow>(checkSql('server'))).rows[0] as ServerRow;
  const differenceMs = Math.round(Number(server.clock_ms) - (asked + Date.now()) / 2);
  const session = [
    ...faultIf(server.bytea_output !== 'hex', `bytea_output is ${server.bytea_output}, not hex`),
    ...faultIf(
      server.extra_float_digits < 1,
      `extra_float_digits is ${server.extra_float_digits}: numbers lose digits`,
    ),
    ...faultIf(
      server.encoding !== 'UTF8',
      `the database's encoding is ${server.encoding}, not UTF8, which only a new database can change`,
    ),
  ];
  const distance = `${differenceMs} ms from the gateway's`;
  const items = [
    kind === 'replica' ? replicaItem(server) : primaryItem(server),
    ...(kind === 'replica' && server.in_recovery ? [standbyItem(server, statementTimeoutMs)] : []),
    verdict('session', session, 'bytea_output is hex, the encoding UTF8.'),
    Math.abs(differenceMs) <= clockDifferenceMaxMs
      ? verdict('clock', [], `${distance}.`)
      : failure('clock', `It is ${distance}; expiry of tokens is judged by the gateway's clock.`),
  ];
  return { systemIdentifier: server.system_identifier, items };
}

/** Names that PostgreSQL takes for a time zone of the IANA only: abbreviations have no slash, POSIX zones ("Foo1") a digit. */
const placeName = /^[A-Za-z_-]+(\/[A-Za-z_-]+)+$/;

/** Checks that PostgreSQL, and for other names also Node, whose list of zones takes 6 MB, know the time zone of `from` and `to`. */
export async function checkTimeZone(client: pg.Client, timeZone: string): Promise<Item> {
  try {
    if (!placeName.test(timeZone)) new Intl.DateTimeFormat('en', { timeZone });
    await client.query('select now() at time zone $1', [timeZone]);
    return verdict('time_zone', [], `PostgreSQL knows ${timeZone}.`);
  } catch (error) {
    if (!(error instanceof RangeError) && (error as { code?: string }).code !== '22023') throw error;
    return verdict('time_zone', [`PostgreSQL knows no time zone ${timeZone}`]);
  }
}

/** Checks that the reader can execute its functions and that the keyring holds every key in use. */
export async function checkFunctions(client: pg.Client, settings: Settings): Promise<Item[]> {
  const { error } = await attempt(client, `select * from gateway.find_token('\\x00')`);
  const unusable = error ? [`gateway.find_token cannot be executed: ${error.message}`] : [];
  return [verdict('token_look_up', unusable, 'gateway.find_token works.'), await keyringItem(client, settings)];
}

/** Time of the look for key ids; the check itself gives up a statement after 5 s, and would say that the server does not answer. */
const keyIdsMsMax = 3000;

async function keyringItem(client: pg.Client, { dataKeys }: Settings): Promise<Item> {
  const statements = `set local statement_timeout = ${keyIdsMsMax}; select key_id from gateway.key_ids() order by 1`;
  const keys = await attempt<{ key_id: string }>(client, statements).catch((error) => {
    if (isOccupied(error)) return null;
    throw error;
  });
  if (keys === null)
    return failure('connection', 'A lock on a table hides the ids of the data keys now.', 'gateway.key_ids()');
  if (keys.error?.code === queryCanceled)
    return failure(
      'keyring',
      `gateway.key_ids() takes more than ${keyIdsMsMax / 1000} s: let it take a smaller sample, or run ANALYZE.`,
    );
  if (keys.error) return verdict('keyring', [`gateway.key_ids() cannot be executed: ${keys.error.message}`]);
  const known = parseKeyring(dataKeys || '{}').ids;
  const used = keys.rows.map(({ key_id }) => key_id);
  const missing = used.filter((id) => !known.includes(id));
  const faults = faultIf(missing.length > 0, `DATA_KEYS lacks ${missing.join(', ')}, which the database uses`);
  return verdict('keyring', faults, `DATA_KEYS has every key in use: ${used.join(', ') || 'none'}.`);
}

function replicaItem({ in_recovery, read_only }: ServerRow): Item {
  if (!in_recovery) return verdict('recovery', ['it is not in recovery: this is no replica but a primary']);
  return verdict('recovery', faultIf(!read_only, 'transactions can write'), 'It is a replica and read-only.');
}

function primaryItem({ in_recovery, read_only }: ServerRow): Item {
  if (in_recovery) return failure('recovery', 'It is in recovery: no primary now, so writes will be answered 503.');
  if (read_only) return failure('recovery', 'Transactions are read-only, so writes will be answered 503.');
  return verdict('recovery', [], 'It is a primary.');
}

/** A standby that does not tell the primary of its statements ends them where replay needs what they read. */
function standbyItem({ paused, feedback, conflict_delay_ms: delayMs }: ServerRow, statementTimeoutMs: number): Item {
  if (paused) return failure('standby', 'Replay is paused, so its data grows older until it serves no reads.');
  if (feedback || delayMs < 0 || delayMs >= statementTimeoutMs)
    return verdict('standby', [], 'It replays, and leaves statements their time.');
  return warning(
    'standby',
    `hot_standby_feedback is off, and replay ends a statement that it waits for after ${delayMs} ms (max_standby_streaming_delay): pages break off while the primary vacuums.`,
  );
}
