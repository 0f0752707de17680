import pg from 'pg';
import { connectionUrls, serverName } from '../db/connection-url.js';
import { type Resource, usesCodecModule } from '../definition/resource.js';
import { databaseErrorKind } from '../errors.js';
import { loadCodecModule } from '../projection/codec-module.js';
import type { Settings } from '../settings.js';
import { type Finding, type Item, verdict, warning } from './finding.js';
import { checkRole, readerPrivileges, writer } from './role.js';
import { checkFunctions, checkServer, checkTimeZone } from './server.js';
import { checkViews } from './views.js';
import { checkWall, sampleWorkspaces } from './workspaces.js';
import { checkWriteViews } from './write-views.js';

const statementTimeoutMs = 5000;

/**
 * Checks every replica and the primary at the same time, over one connection each. Changes nothing and throws nothing: a
 * server that cannot be reached is a finding that does not refuse. `serve` starts when no finding refuses.
 */
export async function inspect(settings: Settings, resources: readonly Resource[]): Promise<Finding[]> {
  const replicas = connectionUrls(settings.replicaUrls);
  if (replicas.length === 0) {
    return [{ server: 'settings', ...verdict('replicas', ['REPLICA_URLS is not set: there is nothing to read from']) }];
  }
  const inspections = replicas.map((url, i) =>
    inspectServer(`replica ${i + 1}`, url, settings, resources, checkReplica),
  );
  inspections.push(checkCodecModule(settings, resources));
  if (settings.primaryUrl !== '')
    inspections.push(inspectServer('primary', settings.primaryUrl, settings, resources, checkPrimary));
  return (await Promise.all(inspections)).flat();
}

/** Checks that the module of CODEC_MODULE can be loaded, where it is set or a codec needs it. */
async function checkCodecModule({ codecModule }: Settings, resources: readonly Resource[]): Promise<Finding[]> {
  const users = resources.filter(usesCodecModule).map(({ name }) => name);
  if (codecModule === '' && users.length === 0) return [];
  const finding = (fault?: string): Finding[] => [
    { server: 'settings', ...verdict('codec module', fault ? [fault] : [], `${codecModule} is loaded.`) },
  ];
  if (codecModule === '') return finding(`CODEC_MODULE is not set, and codecs of ${users.join(', ')} need it`);
  return loadCodecModule(codecModule).then(
    () => finding(),
    (error: Error) => finding(`CODEC_MODULE: ${error.message}`),
  );
}

type Inspection = (client: pg.Client, settings: Settings, resources: readonly Resource[]) => AsyncGenerator<Item[]>;

const checkReplica: Inspection = async function* (client, settings, resources) {
  yield await checkServer(client, 'replica');
  yield [await checkTimeZone(client, settings.timeZone)];
  yield await checkRole(client, readerPrivileges(resources));
  yield await checkFunctions(client, settings);
  const views = await checkViews(client, resources);
  yield views;
  const { ids, item } = await sampleWorkspaces(client);
  yield [item];
  for (const [i, resource] of resources.entries()) {
    if (ids.length > 0 && views[i]?.ok) yield [await checkWall(client, resource, ids)];
  }
};

const checkPrimary: Inspection = async function* (client, _, resources) {
  yield await checkServer(client, 'primary');
  yield await checkRole(client, writer);
  yield await checkWriteViews(client, resources);
};

async function inspectServer(
  role: string,
  url: string,
  settings: Settings,
  resources: readonly Resource[],
  inspection: Inspection,
): Promise<Finding[]> {
  const server = `${role} (${serverName(url)})`;
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
    for await (const found of inspection(client, settings, resources)) items.push(...found);
  } catch (error) {
    items.push(broken(error));
  } finally {
    await client.end().catch(() => undefined);
  }
  return items.map((item) => ({ server, ...item }));
}

/** The server cannot be reached now, or refuses permanently: a wrong password, an unknown database. */
function broken(error: unknown): Item {
  const { code, message } = error as { code?: string; message: string };
  const reason = message || code || 'no reason given';
  if (databaseErrorKind(error) === 'permanent')
    return verdict('connection', [`it refuses: ${reason}${code ? ` (${code})` : ''}`]);
  return warning('connection', `It cannot be reached now: ${reason}.`);
}
