import pg from 'pg';
import { connectionUrls, serverName } from '../db/connection-url.js';
import type { WorkspaceId } from '../db/statement.js';
import { compileResource } from '../definition/compiled.js';
import { redactionRules } from '../definition/redaction-rules.js';
import { type Resource, usesCodecModule } from '../definition/resource.js';
import { databaseErrorKind } from '../errors.js';
import { type DecodeFunction, loadCodecModule } from '../projection/codec-module.js';
import { parseKeyring } from '../projection/keyring.js';
import type { ProjectionOptions } from '../projection/options.js';
import { compileRedaction } from '../projection/redact.js';
import type { Settings } from '../settings.js';
import { type Finding, failure, found, type Item, verdict } from './finding.js';
import { checkPlans } from './plans.js';
import { checkRecords } from './records.js';
import { checkRole, readerPrivileges, writer } from './role.js';
import { checkFunctions, checkServer, checkTimeZone } from './server.js';
import { checkViews } from './views.js';
import { checkWall, sampleWorkspaces } from './workspaces.js';
import { checkWriteViews } from './write-views.js';
import { checkWrites } from './writes.js';

const statementTimeoutMs = 5000;

/** The needs of the gateway. */
interface Inspection {
  readonly settings: Settings;
  readonly resources: readonly Resource[];
  /** Null: CODEC_MODULE cannot be loaded, so no value can be decoded. */
  readonly projection: ProjectionOptions | null;
  readonly thorough: boolean;
}

/**
 * Checks every replica and the primary at the same time, over one connection each, and throws nothing: a server that cannot be reached
 * is a finding that does not refuse. `serve` starts when no finding refuses. Changes nothing; `thorough`, for `check` alone, also
 * compares records with their schema, makes plans, and tries writes that are rolled back.
 */
export async function inspect(
  settings: Settings,
  resources: readonly Resource[],
  { thorough = false } = {},
): Promise<Finding[]> {
  const replicas = connectionUrls(settings.replicaUrls);
  if (replicas.length === 0)
    return [found('settings', verdict('replicas', ['REPLICA_URLS is not set: there is nothing to read from']))];
  const { decode, items } = await codecModule(settings, resources);
  const usable = items.every(({ level }) => level === 'ok');
  const projection = usable ? projectionOf(settings, resources, decode) : null;
  const inspection = { settings, resources, projection, thorough };
  const workspaces = new Set<WorkspaceId>(); // the writer cannot list them
  const onReplicas = Promise.all(
    replicas.map((url, i) =>
      inspectServer(`replica ${i + 1}`, url, settings, (client) => checkReplica(client, inspection, workspaces)),
    ),
  );
  const sampled = onReplicas.then(() => [...workspaces]);
  const onPrimary =
    settings.primaryUrl === ''
      ? []
      : inspectServer('primary', settings.primaryUrl, settings, (client) => checkPrimary(client, inspection, sampled));
  const servers = await Promise.all([onReplicas, onPrimary]);
  return [...items.map((item) => found('settings', item)), ...servers.flat(2)];
}

/** Loads the module of CODEC_MODULE, where it is set or a codec needs it. */
async function codecModule(
  { codecModule: path }: Settings,
  resources: readonly Resource[],
): Promise<{ decode?: DecodeFunction | undefined; items: Item[] }> {
  const users = resources.filter(usesCodecModule).map(({ name }) => name);
  if (path === '' && users.length === 0) return { items: [] };
  if (path === '')
    return { items: [verdict('codec_module', [`CODEC_MODULE is not set, and codecs of ${users.join(', ')} need it`])] };
  return loadCodecModule(path).then(
    (decode) => ({ decode, items: [verdict('codec_module', [], `${path} is loaded.`)] }),
    (error: Error) => ({ items: [verdict('codec_module', [`CODEC_MODULE: ${error.message}`])] }),
  );
}

function projectionOf(
  settings: Settings,
  resources: readonly Resource[],
  decode: DecodeFunction | undefined,
): ProjectionOptions {
  return {
    keyring: parseKeyring(settings.dataKeys || '{}'),
    legacy: settings.decodeLegacy,
    decrypt: 'native',
    reportMismatch: () => undefined,
    redactDiff: compileRedaction(redactionRules(resources)),
    decode,
  };
}

/** Adds the workspaces that it finds. */
async function* checkReplica(
  client: pg.Client,
  { settings, resources, projection, thorough }: Inspection,
  workspaces: Set<WorkspaceId>,
): AsyncGenerator<Item[]> {
  yield await checkServer(client, 'replica');
  yield [await checkTimeZone(client, settings.timeZone)];
  yield await checkRole(client, readerPrivileges(resources));
  yield await checkFunctions(client, settings);
  const views = await checkViews(client, resources);
  yield views;
  const { ids, item } = await sampleWorkspaces(client);
  yield [item];
  for (const id of ids) workspaces.add(id);
  for (const [i, resource] of resources.entries()) {
    if (views[i]?.level !== 'ok') continue;
    if (ids.length > 0) yield [await checkWall(client, resource, ids)];
    if (projection) yield await checkRecords(client, resource, projection, ids, { schema: thorough });
    if (thorough) yield [await checkPlans(client, resource)];
  }
}

async function* checkPrimary(
  client: pg.Client,
  { resources, projection, thorough }: Inspection,
  workspaces: Promise<readonly WorkspaceId[]>,
): AsyncGenerator<Item[]> {
  const server = await checkServer(client, 'primary');
  yield server;
  yield await checkRole(client, writer);
  const views = await checkWriteViews(client, resources);
  yield views;
  // Writes are tried on a server that accepts them, and where nothing that they need is missing already.
  if (!thorough || projection === null || server[0]?.level !== 'ok' || views.some(({ level }) => level !== 'ok'))
    return;
  const sample = await workspaces;
  for (const resource of resources) {
    const { write, ...compiled } = compileResource(resource, projection, () => undefined);
    if (write !== null) yield [await checkWrites(client, { ...compiled, write }, sample)];
  }
}

async function inspectServer(
  role: string,
  url: string,
  settings: Settings,
  check: (client: pg.Client) => AsyncGenerator<Item[]>,
): Promise<Finding[]> {
  const where = `${role} (${serverName(url)})`;
  const items: Item[] = [];
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: settings.connectTimeoutMs,
    query_timeout: statementTimeoutMs,
    application_name: 'gateway-check',
  });
  client.on('error', () => undefined); // the statement on a lost connection rejects
  try {
    await client.connect();
    items.push(verdict('connection', [], 'It answers.'));
    for await (const some of check(client)) items.push(...some);
  } catch (error) {
    items.push(broken(error));
  } finally {
    await client.end().catch(() => undefined);
  }
  return items.map((item) => found(where, item));
}

/** The server cannot be reached now, or refuses permanently: a wrong password, an unknown database. */
function broken(error: unknown): Item {
  const { code, message } = error as { code?: string; message: string };
  const reason = message || code || 'no reason given';
  const isLoginRefused = /^(28|3D)/.test(code ?? ''); // a wrong password, or no such database
  if (isLoginRefused || databaseErrorKind(error) === 'permanent')
    return verdict('connection', [`it refuses: ${reason}${code ? ` (${code})` : ''}`]);
  return failure('connection', `It cannot be reached now: ${reason}.`);
}
