import type pg from 'pg';
import { SettingsError, StartRefused } from '../../base/errors.js';
import type { Observe, UnfitServer } from '../../base/events.js';
import { connectionUrls, serverName } from '../../postgres/connection-url.js';
import type { CheckResult } from '../../postgres/probe.js';
import type { WorkspaceId } from '../../postgres/statement.js';
import type { Resource } from '../../resource/definition/resource.js';
import type { ProjectionOptions } from '../../resource/projection/redact.js';
import { plainViewsOf } from '../../resource/statements/walls.js';
import type { Settings } from '../settings.js';
import { type Finding, found, type Item, titleOf, verdict } from './finding.js';
import { scanItems } from './scans.js';
import { checkKeyring, checkServer, checkTimeZone, checkTokens } from './server.js';
import { broken, checkEncryption, checkPooler, connectTo } from './session.js';
import { checkedProjection, checkOpenPoints, checkRedis } from './settings.js';
import { type CheckedServer, checkResult, judge, type ServerKind } from './spared.js';
import { checkApplied, checkViews, viewNeed, writeNeeds } from './views.js';
import { checkIds, sampleWorkspaces } from './workspaces.js';

/** The needs of the gateway. */
interface Inspection {
  readonly settings: Settings;
  readonly resources: readonly Resource[];
  /** Null: CODEC_MODULE cannot be loaded, so no value can be decoded. */
  readonly projection: ProjectionOptions | null;
  readonly thorough: boolean;
  /** Workspaces whose records `check` reads; a start knows none. */
  readonly workspaces: readonly WorkspaceId[];
}

/** The result of an inspection. */
export interface Inspected {
  readonly findings: readonly Finding[];
  /** Replicas and servers of PRIMARY_URLS, each counted from 0, that must be checked before their first use, or some of their views. */
  readonly unchecked: ReadonlyMap<number, CheckResult>;
  readonly uncheckedPrimaries: ReadonlyMap<number, CheckResult>;
  /** System identifier of the cluster; undefined when no server answered. */
  readonly system: string | undefined;
}

/**
 * Checks every replica and every server of PRIMARY_URLS at the same time, and throws nothing: a server that cannot be reached
 * is a finding that does not refuse. `serve` starts when no finding refuses. Changes nothing; `thorough`, for `check` alone, also
 * decodes records, compares them with their schema, makes plans, and tries writes that are rolled back.
 */
export async function inspect(
  settings: Settings,
  resources: readonly Resource[],
  { thorough = false } = {},
): Promise<Inspected> {
  const replicas = connectionUrls(settings.replicaUrls);
  const { projection, items } = await checkedProjection(settings, resources);
  if (replicas.length === 0)
    items.push(verdict('replicas', ['REPLICA_URLS is not set: there is nothing to read from']));
  const sample = thorough ? await sampleWorkspaces(settings.adminUrl) : { ids: [], items: [] };
  items.push(...sample.items);
  const inspection = { settings, resources, projection, thorough, workspaces: sample.ids };
  const primaries = connectionUrls(settings.primaryUrls);
  const servers = await Promise.all([
    ...replicas.map((url, at) => inspectServer({ kind: 'replica', at, name: `replica ${at + 1}` }, url, inspection)),
    ...primaries.map((url, at, { length }) =>
      inspectServer({ kind: 'primary', at, name: length === 1 ? 'primary' : `primary ${at + 1}` }, url, inspection),
    ),
  ]);
  const judged = judge(servers);
  items.push(...judged.cluster);
  if (thorough && settings.redisUrl !== '') items.push(await checkRedis(settings));
  if (thorough) items.push(...resources.flatMap(checkOpenPoints));
  return {
    findings: [...items.map((item) => found('settings', item)), ...judged.findings],
    unchecked: judged.unchecked('replica'),
    uncheckedPrimaries: judged.unchecked('primary'),
    system: judged.system,
  };
}

/**
 * Inspects the databases as `check` does and returns the settings that fit them: without named statements where a pooler loses these.
 * Throws StartRefused, or SettingsError, with every refused item. A server that cannot be used does not refuse the start while another can, because it
 * may become good: it is to be checked before its first use.
 */
export async function fittingSettings(
  settings: Settings,
  resources: readonly Resource[],
  observe: Observe,
): Promise<{ settings: Settings; unfit: readonly UnfitServer[] } & Omit<Inspected, 'findings'>> {
  const { findings, ...rest } = await inspect(settings, resources);
  const wrong = findings.filter(({ level }) => level === 'refused');
  if (wrong.length > 0) {
    const reasons = wrong.map((finding) => `${finding.where}: ${titleOf(finding)}: ${finding.detail}`);
    const ofSettings = wrong.every(({ where }) => where === 'settings');
    throw new (ofSettings ? SettingsError : StartRefused)(`The gateway does not start:\n  ${reasons.join('\n  ')}`);
  }
  const failed = findings.filter(({ level }) => level === 'failed');
  for (const finding of failed) observe({ type: 'server_unfit', ...unfitOf(finding) });
  const unfit = failed.filter(({ code }) => code !== 'connection').map(unfitOf); // the states of the servers tell of those
  const losesPrepared = findings.some(({ code, level }) => code === 'pooler' && level === 'warning');
  if (!losesPrepared) return { settings, unfit, ...rest };
  observe({ type: 'named_statements_off' });
  return { settings: { ...settings, namedStatements: false }, unfit, ...rest };
}

function unfitOf(finding: Finding): UnfitServer {
  return { server: finding.where, item: titleOf(finding), detail: finding.detail };
}

/**
 * Checks a server that could not be checked at the start, where `system` was the cluster. A
 * server of PRIMARY_URLS that is in recovery has no fault: it takes no writes.
 */
export async function checkServerLate(
  kind: ServerKind,
  url: string,
  { settings, resources, system }: Pick<Inspection, 'settings' | 'resources'> & Pick<Inspected, 'system'>,
): Promise<CheckResult> {
  const { projection } = await checkedProjection(settings, resources);
  const inspection = { settings, resources, projection, thorough: false, workspaces: [] };
  const server = await inspectServer({ kind, at: 0, name: kind }, url, inspection);
  if (system !== undefined && server.system !== system)
    return { refusal: 'it belongs to another cluster, or cannot be checked', uncheckedViews: new Set() };
  return checkResult(server.items);
}

async function* checkReplica(client: pg.Client, inspection: Inspection): AsyncGenerator<Item[]> {
  const { settings, resources, projection, thorough, workspaces } = inspection;
  yield await checkTimeZone(client, settings.timeZone);
  yield await checkTokens(client);
  yield await checkKeyring(client, settings);
  const views = await checkViews(client, resources.map(viewNeed));
  yield views;
  yield await checkApplied(client, resources);
  const scans = await scanItems(client, resources.flatMap(plainViewsOf));
  yield scans;
  if (!thorough) return;
  const [{ checkRecords }, { checkPlans }] = await Promise.all([import('./records.js'), import('./plans.js')]);
  const locked = scans.filter(({ code }) => code === 'connection');
  for (const [i, resource] of resources.entries()) {
    if (views[i]?.level !== 'ok' || locked.some(({ object }) => object === resource.view)) continue;
    yield await checkIds(client, resource, workspaces);
    if (projection) yield await checkRecords(client, resource, projection, workspaces);
    yield await checkPlans(client, resource);
  }
}

async function* checkPrimary(
  client: pg.Client,
  { resources, projection, thorough, workspaces }: Inspection,
  takesWrites: boolean,
): AsyncGenerator<Item[]> {
  const views = await checkViews(client, resources.flatMap(writeNeeds));
  const ofWrites = resources.flatMap(({ write }) => write?.view ?? []);
  const scans = await scanItems(client, [...resources.flatMap(plainViewsOf), ...ofWrites]);
  yield [...views, ...scans.filter(({ object }) => ofWrites.includes(object))];
  // Writes are tried on a server that accepts them, and where nothing that they need is missing already.
  if (!thorough || projection === null || !takesWrites || views.some(({ level }) => level !== 'ok')) return;
  const [{ compileResource }, { checkWrites }] = await Promise.all([
    import('../../resource/definition/compiled.js'),
    import('./writes.js'),
  ]);
  for (const resource of resources) {
    const { write, ...compiled } = compileResource(resource, projection, () => undefined);
    if (write !== null) yield [await checkWrites(client, { ...compiled, write }, workspaces)];
  }
}

async function inspectServer(
  place: Pick<CheckedServer, 'kind' | 'at' | 'name'>,
  url: string,
  inspection: Inspection,
): Promise<CheckedServer> {
  const { connectTimeoutMs, namedStatements } = inspection.settings;
  const items: Item[] = [];
  const connect = (): Promise<pg.Client> => connectTo(url, connectTimeoutMs);
  let client: pg.Client | null = null;
  let system: string | undefined;
  try {
    client = await connect();
    items.push(verdict('connection', [], 'It answers.'), checkEncryption(client));
    const { isPooled, item } = await checkPooler(client, connect, namedStatements);
    const server = await checkServer(client, place.kind, inspection, isPooled);
    items.push(item, ...server.items);
    system = server.system;
    const takesWrites = server.items.some(({ code, level }) => code === 'recovery' && level === 'ok');
    const more =
      place.kind === 'replica' ? checkReplica(client, inspection) : checkPrimary(client, inspection, takesWrites);
    for await (const some of more) items.push(...some);
  } catch (error) {
    items.push(...broken(error));
  } finally {
    await client?.end().catch(() => undefined);
  }
  return { ...place, where: `${place.name} (${serverName(url)})`, system, items };
}
