import type pg from 'pg';
import { SettingsError, StartRefused } from '../base/errors.js';
import type { Observe, UnfitServer } from '../base/events.js';
import { splitList } from '../base/members.js';
import { getServerName } from '../postgres/connection-url.js';
import type { CheckResult } from '../postgres/probe.js';
import type { Resource } from '../resource/definition/resource.js';
import { getPlainViews } from '../resource/statements/walls.js';
import type { Settings } from '../settings.js';
import { checkEncryption, checkPooler, connectForCheck, describeConnectionError } from './check-session.js';
import { type Finding, getTitle, type Item, makeItem, placeItem } from './finding.js';
import { checkScans } from './scans.js';
import { checkCollations, checkKeyring, checkServer, checkTimeZone, checkTokens, checkWall } from './server-checks.js';
import { type CheckInput, checkProjection, checkWallKey } from './setting-checks.js';
import type { ThoroughChecks } from './thorough/thorough.js';
import { type CheckedServer, judgeServers, makeCheckResult, type ServerKind, strangerResult } from './verdicts.js';
import { checkApplied, checkCreate, checkViews, getViewNeed, listWriteNeeds } from './view-checks.js';

/** `start` covers all that keeps the gateway from serving; `all` adds stored values, plans and trial writes, which only `check` loads. */
export type Depth = 'start' | 'all';

export interface InspectionResult {
  readonly findings: readonly Finding[];
  /** Servers, counted from 0, which are to be checked, entirely or some of their views, before their first use. */
  readonly unchecked: ReadonlyMap<number, CheckResult>;
  readonly uncheckedPrimaries: ReadonlyMap<number, CheckResult>;
  readonly system: string | undefined;
}

/** Inspects all servers at the same time, and changes nothing. An unreachable server is a finding that does not refuse. */
export async function inspect(
  settings: Settings,
  resources: readonly Resource[],
  depth: Depth = 'start',
): Promise<InspectionResult> {
  const thoroughChecks =
    depth === 'all' ? await (await import('./thorough/thorough.js')).checkThoroughly(settings, resources) : null;
  const replicas = splitList(settings.replicaUrls);
  const { projection, items } = await checkProjection(settings, resources);
  if (replicas.length === 0)
    items.push(makeItem('refused', 'replicas', 'REPLICA_URLS is not set: there is nothing to read from.'));
  items.push(checkWallKey(settings));
  const inspection = { settings, resources, projection, thoroughChecks };
  const primaries = splitList(settings.primaryUrls);
  const servers = await Promise.all([
    ...replicas.map((url, at) => inspectServer({ kind: 'replica', at, name: `replica ${at + 1}` }, url, inspection)),
    ...primaries.map((url, at, { length }) =>
      inspectServer({ kind: 'primary', at, name: length === 1 ? 'primary' : `primary ${at + 1}` }, url, inspection),
    ),
  ]);
  const verdicts = judgeServers(servers);
  items.push(...verdicts.cluster);
  items.unshift(...(thoroughChecks?.items ?? []));
  return {
    findings: [...items.map((item) => placeItem('settings', item)), ...verdicts.findings],
    unchecked: verdicts.unchecked('replica'),
    uncheckedPrimaries: verdicts.unchecked('primary'),
    system: verdicts.system,
  };
}

/** Returns settings that suit the databases. Throws StartRefused or SettingsError if no server can be used, but not for a successor. */
export async function fitSettings(
  settings: Settings,
  resources: readonly Resource[],
  observe: Observe,
  isSuccessor = false,
): Promise<
  { settings: Settings; unfit: readonly UnfitServer[]; isDoubtful: boolean } & Omit<InspectionResult, 'findings'>
> {
  const { findings, ...inspected } = await inspect(settings, resources);
  const refused = findings.filter(({ level }) => level === 'refused');
  const wrong = isSuccessor ? refused.filter(({ where }) => where === 'settings') : refused;
  const isDoubtful = findings.some(({ level, code }) => level === 'refused' || code === 'dropped');
  if (wrong.length > 0) {
    const reasons = wrong.map((finding) => `${finding.where}: ${getTitle(finding)}: ${finding.detail}`);
    const areSettings = wrong.every(({ where }) => where === 'settings');
    throw new (areSettings ? SettingsError : StartRefused)(`The gateway does not start:\n  ${reasons.join('\n  ')}`);
  }
  const failed = findings.filter(({ level }) => level === 'failed' || level === 'refused'); // refused items of a successor
  for (const finding of failed) observe({ type: 'server_unfit', ...describeUnfitServer(finding) });
  const unfit = failed.filter(({ code }) => code !== 'connection').map(describeUnfitServer); // the states of the servers report those
  const losesPrepared = findings.some(({ code, level }) => code === 'pooler' && level === 'warning');
  if (losesPrepared) observe({ type: 'named_statements_off' });
  const fitted = losesPrepared ? { ...settings, namedStatements: false } : settings;
  return { ...inspected, settings: fitted, unfit, isDoubtful };
}

function describeUnfitServer(finding: Finding): UnfitServer {
  return { server: finding.where, item: getTitle(finding), detail: finding.detail };
}

/** Checks a server before its first use. A standby in PRIMARY_URLS is no fault: it takes no writes. */
export async function checkServerLate(
  kind: ServerKind,
  url: string,
  { settings, resources, system }: Omit<CheckInput, 'projection'> & Pick<InspectionResult, 'system'>,
): Promise<CheckResult> {
  const { projection } = await checkProjection(settings, resources);
  const inspection = { settings, resources, projection, thoroughChecks: null };
  const server = await inspectServer({ kind, at: 0, name: kind }, url, inspection);
  const result = makeCheckResult(server.items);
  if (server.system === undefined) return { ...result, refusal: result.refusal ?? 'it cannot be checked' };
  return server.system === (system ?? server.system) ? result : strangerResult;
}

type InspectionInput = CheckInput & { readonly thoroughChecks: ThoroughChecks | null };

async function* checkReplica(client: pg.Client, input: InspectionInput): AsyncGenerator<Item[]> {
  const { settings, resources, thoroughChecks } = input;
  yield await checkTimeZone(client, settings.timeZone);
  yield await checkWall(client, settings);
  yield await checkTokens(client);
  yield await checkKeyring(client, settings, resources);
  const views = await checkViews(client, resources.map(getViewNeed));
  yield views;
  yield await checkApplied(client, resources);
  const fitting = resources.filter((_, i) => views[i]?.level === 'ok'); // the causes of the other findings are known
  const scans = await checkScans(client, fitting.flatMap(getPlainViews));
  yield scans;
  if (thoroughChecks) yield* thoroughChecks.checkReplica(client, input, views, scans);
}

async function* checkPrimary(client: pg.Client, input: InspectionInput, takesWrites: boolean): AsyncGenerator<Item[]> {
  const { settings, resources, thoroughChecks } = input;
  yield await checkWall(client, settings);
  yield await checkTokens(client, null); // replicas look tokens up first: a lock here keeps no write from the primary
  const views = await checkViews(client, resources.flatMap(listWriteNeeds));
  if (takesWrites) for (const resource of resources) views.push(...(await checkCreate(client, resource)));
  const writeViews = resources.flatMap(({ write }) => write?.view ?? []);
  const scans = await checkScans(client, [...resources.flatMap(getPlainViews), ...writeViews]);
  yield [...views, ...scans.filter(({ object }) => writeViews.includes(object))];
  if (thoroughChecks && takesWrites && views.every(({ level }) => level === 'ok'))
    yield* thoroughChecks.checkPrimary(client, input);
}

async function inspectServer(
  identity: Pick<CheckedServer, 'kind' | 'at' | 'name'>,
  url: string,
  inspection: InspectionInput,
): Promise<CheckedServer> {
  const { namedStatements } = inspection.settings;
  const items: Item[] = [];
  const connect = (): Promise<pg.Client> => connectForCheck(url, identity.kind, inspection.settings);
  let client: pg.Client | null = null;
  let system: string | undefined;
  try {
    client = await connect();
    items.push(makeItem('ok', 'connection', 'It answers.'), checkEncryption(client));
    const { isPooled, item } = await checkPooler(client, connect, namedStatements);
    const server = await checkServer(client, identity.kind, inspection, isPooled);
    items.push(item, ...server.items, ...(await checkCollations(client)));
    system = server.system;
    const takesWrites = server.items.some(({ code, level }) => code === 'recovery' && level === 'ok');
    const checks =
      identity.kind === 'replica' ? checkReplica(client, inspection) : checkPrimary(client, inspection, takesWrites);
    for await (const checked of checks) items.push(...checked);
  } catch (error) {
    items.push(...describeConnectionError(error));
  } finally {
    await client?.end().catch(() => undefined);
  }
  return { ...identity, where: `${identity.name} (${getServerName(url)})`, system, items };
}
