import type { KeyObject } from 'node:crypto';
import type pg from 'pg';
import {
  getCorrection,
  hiddenRowsRemedy,
  insufficientPrivilege,
  queryCanceled,
  undefinedTable,
  wallRefusal,
} from '../postgres/database-errors.js';
import { primaryReadConnections } from '../postgres/primary.js';
import type { WorkspaceId } from '../postgres/statement.js';
import { guard } from '../postgres/wire/queries.js';
import { listSessionSettings } from '../postgres/wire/session.js';
import { makeWorkspaceMac } from '../postgres/workspace-mac.js';
import type { Resource } from '../resource/definition/resource.js';
import { parseKeyring } from '../resource/projection/keyring.js';
import { makeTextOpener } from '../resource/projection/sealed-cells.js';
import { getViews } from '../resource/statements/walls.js';
import type { Settings } from '../settings.js';
import { runReadOnly } from './check-session.js';
import { type Item, makeItem, readCheckSql, summarizeFaults } from './finding.js';
import type { ServerKind } from './verdicts.js';

export async function checkServer(
  client: pg.Client,
  kind: ServerKind,
  { settings, resources }: { readonly settings: Settings; readonly resources: readonly Resource[] },
  isPooled: boolean,
): Promise<{ items: Item[]; system: string | undefined }> {
  const { shortConnections, longConnections, primaryConnections, webConcurrency, redisUrl } = settings;
  const pools = kind === 'replica' ? shortConnections + longConnections : primaryConnections + primaryReadConnections;
  const instances = redisUrl === '' ? 1 : settings.instances;
  const processes = webConcurrency * instances;
  // Reserved by the pools, one that waits for the end of each lock, and the look at the views
  const besidePools = 2 * pools + resources.length + 1;
  const need = {
    kind,
    role: kind === 'replica' ? 'gateway_reader' : 'gateway_writer',
    relations: ['gateway.applied_files', ...resources.flatMap(getViews)],
    pooled: isPooled,
    statementTimeoutMs: settings.statementTimeoutMs,
    session: listSessionSettings(kind, settings),
    ofRole: listSessionSettings(kind, { statementTimeoutMs: 0, writeTimeoutMs: 0 }),
    connections: (pools + 1) * processes,
    peak: (pools + 1 + besidePools) * processes,
    sum: `${pools} of the pools and a probe, by ${webConcurrency} workers and ${instances} machines`,
    clock: Date.now(),
  };
  const { rows } = await client.query<Item & { system: string }>(readCheckSql('server'), [JSON.stringify(need)]);
  return { items: rows.map(({ system: _, ...item }) => item), system: rows[0]?.system };
}

export function checkTimeZone(client: pg.Client, timeZone: string): Promise<Item[]> {
  const ask = async (): Promise<Item[]> => {
    await client.query('select now() at time zone $1', [timeZone]);
    return [makeItem('ok', 'time_zone', `PostgreSQL knows ${timeZone}.`)];
  };
  return runReadOnly(client, {}, ask, () => [
    makeItem('refused', 'time_zone', `PostgreSQL knows no time zone ${timeZone}.`),
  ]);
}

export async function checkWall(client: pg.Client, { wallKey }: Settings): Promise<Item[]> {
  if (wallKey === '') return [];
  const ask = async (): Promise<Item[]> => {
    // the server's clock is used, so that a wrong clock is not taken for another key: the item `clock` names it
    const { rows } = await client.query(`select extract(epoch from now()) * 1000 as ms`);
    await client.query(guard.text, [makeWorkspaceMac(wallKey, () => Number(rows[0].ms))('check' as WorkspaceId)]);
    await client.query('select gateway.workspace()');
    return [makeItem('ok', 'wall_key', 'The database accepts workspaces that are sealed by WALL_KEY.')];
  };
  const otherKey = 'the database has another WALL_KEY: run `migrate` with this one, or set the one of `migrate`.';
  return runReadOnly(client, {}, ask, ({ code, message }) => {
    const detail = code === wallRefusal ? otherKey : `gateway.workspace() cannot be executed: ${message}.`;
    return [makeItem('refused', 'wall_key', detail)];
  });
}

/** Compares collations: a replica with another ICU or libc than the primary misses rows. */
export function checkCollations(client: pg.Client): Promise<Item[]> {
  const compare = async () => (await client.query<Item>(readCheckSql('collations'))).rows;
  return runReadOnly(client, {}, compare, () => []);
}

/** The look-up of an unknown token does not show that these grants are missing. */
const missingGrants = `select format('gateway_owner cannot read %s: grant select (%s) on %s to gateway_owner in tokens.sql',
    name || '.' || of, of, name) as fault
  from (values ('gateway.workspaces', 'id'), ('gateway.token_owners', 'workspace_id'), ('gateway.token_owners', 'id')) v (name, of)
  where not has_column_privilege('gateway_owner', name, of, 'select')`;

/** Looks an unknown token up. A lock leaves `object` unchecked; without an object the next use finds out. */
export function checkTokens(client: pg.Client, object: string | null = ''): Promise<Item[]> {
  const look = async (): Promise<Item[]> => {
    const hidden = await client.query<{ fault: string }>('select fault from gateway.hidden_token_rows() fault');
    const hiding = hidden.rows.map(({ fault }) => fault);
    if (hiding.length > 0)
      return [{ ...makeItem('failed', 'token_look_up', `${hiding.join('; ')}.`), advice: hiddenRowsRemedy }];
    await client.query(`select * from gateway.find_token('\\x00')`);
    const { rows } = await client.query<{ fault: string }>(missingGrants);
    const faults = rows.map(({ fault }) => fault);
    return [summarizeFaults('token_look_up', faults, { whenOk: 'gateway.find_token works.' })];
  };
  return runReadOnly(client, { object }, look, (error) => {
    const isDropped = error.code === undefinedTable; // the views of tokens are missing, and not the function
    const advice = isDropped || error.code === insufficientPrivilege ? undefined : getCorrection(error);
    const item = makeItem('refused', 'token_look_up', `gateway.find_token cannot be executed: ${error.message}.`);
    return [{ ...item, ...(isDropped && { level: 'failed', code: 'dropped' }), advice }];
  });
}

const ownerGrants =
  'Grant it to gateway_owner, which owns gateway.key_ids(): key_ids.sql has the grants, also those on schemas. Or grant EXECUTE on the function to gateway_reader.';

const otherKeyAdvice = 'Give the other key an id in the app and in DATA_KEYS, and let the app seal its values again.';

/** Damaged values up to this share are no fault of a key: so many short ones look like text under a wrong key. */
const exceptionsMax = 0.05;

/** Counts only the samples that a codec can open or refuse. */
function countOpened(
  openers: readonly ReturnType<typeof makeTextOpener>[],
  samples: readonly string[],
  key: KeyObject | undefined,
): Omit<Opened, 'id'> {
  const opened = samples.flatMap((value) => {
    const outcomes = key === undefined ? [] : openers.map((opensAsText) => opensAsText(value, key));
    return outcomes.every((outcome) => outcome === null) ? [] : outcomes.includes(true);
  });
  return { tried: opened.length, opened: opened.filter(Boolean).length };
}

type Opened = Readonly<{ id: string; tried: number; opened: number }>;

function describeOpened(counts: readonly Opened[]): string {
  return counts.map(({ id, opened, tried }) => `${id}: ${tried - opened} of ${tried} values do not open`).join('; ');
}

/** Checks that every key in use exists, and opens values; the values of one id can belong to a few workspaces. */
export function checkKeyring(
  client: pg.Client,
  { dataKeys }: Settings,
  resources: readonly Resource[],
): Promise<Item[]> {
  const openers = resources
    .flatMap(({ codecs }) => Object.values(codecs))
    .flatMap((codec) => [codec, ...(codec.older ? [codec.older] : [])])
    .filter(({ cipher }) => cipher === 'aes-256-gcm')
    .map(makeTextOpener);
  const compare = async (): Promise<Item[]> => {
    const text = 'select key_id as id, samples from gateway.key_ids() order by 1';
    const { rows } = await client.query<{ id: string; samples: string[] | null }>(text);
    const keyring = parseKeyring(dataKeys || '{}');
    const usedIds = rows.map(({ id }) => id);
    const missing = usedIds.filter((id) => !keyring.ids.includes(id));
    const counts = rows.map(({ id, samples }) => ({ id, ...countOpened(openers, samples ?? [], keyring.get(id)) }));
    const doubtful = counts.filter(({ opened, tried }) => tried - opened > tried * exceptionsMax);
    const isWrong = ({ opened, tried }: Opened): boolean => opened <= tried * exceptionsMax;
    const wrong = describeOpened(doubtful.filter(isWrong));
    const mixed = describeOpened(doubtful.filter((count) => !isWrong(count)));
    const faults = [
      ...(missing.length > 0 ? [`DATA_KEYS lacks ${missing.join(', ')}, which the database uses`] : []),
      ...(wrong !== '' ? [`DATA_KEYS has another key than the database under ${wrong}`] : []),
    ];
    if (faults.length === 0 && mixed !== '')
      return [
        { ...makeItem('failed', 'keyring', `The app has used different keys under ${mixed}.`), advice: otherKeyAdvice },
      ];
    const whenOk = `DATA_KEYS has every key in use: ${usedIds.join(', ') || 'none'}.`;
    return [summarizeFaults('keyring', faults, { whenOk })];
  };
  return runReadOnly(client, { object: 'gateway.key_ids()' }, compare, ({ code, message }) => {
    if (code === queryCanceled) return [makeItem('failed', 'keyring', message)];
    const item = makeItem('refused', 'keyring', `gateway.key_ids() cannot be executed: ${message}.`);
    return [{ ...item, advice: code === insufficientPrivilege ? ownerGrants : undefined }];
  });
}
