import type { RefusedResource, ServerStatus, UnfitServer } from '../../base/events.js';
import { readVersion } from '../../base/paths.js';
import type { Replica } from '../../postgres/replica.js';
import type { LockedResource } from '../../postgres/resource-health.js';
import { collectRecentFaults, type RecentCount } from './recent.js';
import { canJudge, type Lack } from './self.js';

/** The body of /readyz. */
export interface Readiness {
  readonly status: 'ready' | 'not ready';
  readonly reasons: readonly (keyof typeof reasonSentences)[];
  readonly lacks: readonly Lack[];
  readonly replicas: readonly ReplicaStatus[];
  /** Null without a primary. */
  readonly primary: ServerStatus | null;
  /** The cause for which writes wait, or have no connection. */
  readonly writesObstacle?: string | undefined;
  /** Host and port of all servers, if none can be used. */
  readonly onlyAddress?: string | undefined;
  /** Servers that do not fit, but did not refuse the start. */
  readonly unfit: readonly UnfitServer[];
  /** Resources that are answered 503. */
  readonly refused: readonly RefusedResource[];
  /** Resources that are answered 503 while a lock holds them on a replica. */
  readonly locked: readonly LockedResource[];
  readonly recent: readonly RecentCount[];
  /** Null after a success, and without workers. */
  readonly reloadRefused: string | null;
  /** Null without Redis. While Redis is unreachable reads are answered, and each gateway enforces its part of the limits. */
  readonly redis: ServerStatus | null;
}

interface ReplicaStatus {
  readonly name: string;
  /** A `lagging` replica is used, but has a third of the allowed lag; a `primary` is listed among replicas, which is no fault. */
  readonly state: 'used' | 'lagging' | 'not used' | 'primary';
  readonly reason: string | null;
  readonly lagSeconds: number | null;
  /** Age of the moment up to which the data is known to be current. */
  readonly dataAgeSeconds: number | null;
}

export interface ReadinessSources extends Pick<Readiness, 'unfit'> {
  readonly replicas: readonly Replica[];
  /** Null without PRIMARY_URLS. */
  readonly primary: { readonly isReachable: boolean; readonly reason: string | null; readonly server?: string } | null;
  readonly writesObstacle?: () => string | undefined;
  readonly refused: () => Readiness['refused'];
  readonly lacks: () => Readiness['lacks'];
  readonly recent: () => Readiness['recent'];
  readonly redis: () => Readiness['redis'];
  readonly lagMaxMs: number;
}

/** Reports ready while a replica is healthy: reads are answered without primary and Redis. */
export function judgeReadiness(sources: ReadinessSources, isStopping: boolean): Readiness {
  const { replicas, primary, unfit, refused, lacks, recent, redis } = sources;
  const canRead = replicas.some(({ state }) => state.healthy);
  const reasons: Readiness['reasons'][number][] = isStopping ? ['stopping'] : [];
  if (!canRead) reasons.push('no healthy replica');
  return {
    status: reasons.length === 0 ? 'ready' : 'not ready',
    reasons,
    replicas: replicas.map(({ name, state }) => ({
      name,
      state: nameReplicaState(state, sources),
      reason: state.reason,
      lagSeconds: toSeconds(state.lagMs),
      dataAgeSeconds: state.asOfMs === null ? null : toSeconds(Math.max(0, Date.now() - state.asOfMs)),
    })),
    primary: primary && { healthy: primary.isReachable, reason: primary.reason },
    writesObstacle: sources.writesObstacle?.(),
    onlyAddress: canRead ? undefined : findOnlyAddress(sources),
    unfit,
    refused: refused(),
    locked: replicas.flatMap(({ locked }) => locked),
    lacks: lacks(),
    recent: recent(),
    reloadRefused: null,
    redis: redis(),
  };
}

function nameReplicaState(
  state: Replica['state'],
  { replicas, lagMaxMs }: ReadinessSources,
): Readiness['replicas'][number]['state'] {
  if (state.healthy) return (state.lagMs ?? 0) > lagMaxMs / 3 ? 'lagging' : 'used';
  return isPrimaryAmongReplicas(state, replicas) ? 'primary' : 'not used';
}

/** Returns the address if the primary cannot be used either: servers of one address are behind a pooler or a proxy. */
function findOnlyAddress({ replicas, primary }: ReadinessSources): string | undefined {
  if (primary === null || primary.isReachable || primary.server === undefined) return undefined;
  const [address, ...others] = new Set(
    [primary.server, ...replicas.map(({ name }) => name)].map((name) => name.split('/')[0]),
  );
  return others.length === 0 ? address : undefined;
}

/** Tells whether the primary is among the replicas, which is no fault while another replica can be read. */
export function isPrimaryAmongReplicas({ isPrimary }: Replica['state'], replicas: readonly Replica[]): boolean {
  return isPrimary && replicas.some(({ state }) => state.healthy);
}

/** Rounds to three digits; JSON has no Infinity. */
function toSeconds(ms: number | null): number | null {
  return ms !== null && Number.isFinite(ms) ? Number((ms / 1000).toPrecision(3)) : null;
}

/** The body of /status.json. */
export interface StatusReport extends Pick<Readiness, 'replicas' | 'primary' | 'redis'> {
  readonly at: string;
  readonly version: string;
  /** `failing` means that reads or writes fail, and `degraded` that something else is wrong. */
  readonly level: 'well' | CurrentFault['level'];
  readonly summary: string;
  readonly faults: readonly CurrentFault[];
  /** A replica with a larger lag is not used. */
  readonly lagSecondsMax: number;
  /** Null without workers. */
  readonly workers: WorkersStatus | null;
}

interface CurrentFault {
  readonly level: 'degraded' | 'failing';
  readonly sentence: string;
  /** Leads to the row of the troubleshooting page, relative to status.json. */
  readonly link: string;
}

/** The row of the remedy, and the sentence of a current fault. */
type FaultSentence = readonly [remedy: string, sentence: string];

interface WorkersStatus {
  readonly configured: number;
  readonly reporting: number;
}

/** Names every current fault: the gateway's own first, those that clients met in the last minute last. Alerts count longer times. */
export function reportStatus(
  readiness: Readiness,
  lagMaxMs: number,
  workers: WorkersStatus | null = null,
): StatusReport {
  const { replicas, primary, redis } = readiness;
  const addLevel = (level: CurrentFault['level'], sentences: readonly FaultSentence[]) =>
    sentences.map(([remedy, sentence]) => ({ level, sentence, remedy }));
  const lackSentences = readiness.lacks.map(({ what, sentence }): FaultSentence => [`lacks-${what}`, sentence]);
  const all = [
    ...addLevel('degraded', lackSentences),
    ...addLevel('failing', listFailures(readiness)),
    ...addLevel('degraded', listDegradations(readiness, workers)),
    ...collectRecentFaults(readiness.recent),
  ];
  const faults = all.map(({ level, sentence, remedy }) => ({ level, sentence, link: `troubleshooting#${remedy}` }));
  const isFailing = faults.some(({ level }) => level === 'failing');
  return {
    at: new Date().toISOString(),
    version: readVersion(),
    level: isFailing ? 'failing' : (faults[0]?.level ?? 'well'),
    summary: faults.length > 1 ? `There are ${faults.length} faults.` : (faults[0]?.sentence ?? 'All is well.'),
    faults,
    replicas,
    lagSecondsMax: lagMaxMs / 1000,
    primary,
    redis,
    workers,
  };
}

const reasonSentences: Readonly<Record<'no worker' | 'no healthy replica' | 'stopping', FaultSentence>> = {
  'no worker': ['workers-die', 'No worker is responding: requests are not answered.'],
  'no healthy replica': ['no-replica', 'Reads fail: no replica can be used.'],
  stopping: ['start', 'The gateway is stopping.'],
};

function listRefusals(refused: readonly RefusedResource[]): FaultSentence[] {
  const names = new Map<string, string[]>();
  for (const { resource, use, item, detail, advice } of refused) {
    const key = `${use === 'read' ? 'Reads' : 'Writes'} of {} are refused with 503: ${item}: ${detail} ${advice}`;
    names.set(key, [...(names.get(key) ?? []), resource]);
  }
  return [...names].map(([sentence, resources]) => ['refused', sentence.replace('{}', () => resources.join(', '))]);
}

/** Adds a full stop unless the reason of a server ends in one. */
const endSentence = (sentence: string): string => sentence.replace(/\.*$/, '.');
const notJudged = 'The gateway does not judge it, because it is at its own limits';

function listFailures(readiness: Readiness): FaultSentence[] {
  const { reasons, primary, writesObstacle, onlyAddress, refused, locked, lacks } = readiness;
  const sentences: FaultSentence[] = [];
  const add = (remedy: string, sentence: string): unknown => sentences.push([remedy, sentence]);
  if (onlyAddress !== undefined)
    add('replica-out', `All servers are reached through ${onlyAddress}: look at this pooler or proxy first.`);
  sentences.push(...reasons.map((reason) => reasonSentences[reason]));
  const primaryReason = canJudge(lacks) ? primary?.reason : notJudged;
  if (primary?.healthy === false)
    add('writes-refused', endSentence(`Writes fail: the primary cannot be used: ${primaryReason}`));
  if (writesObstacle !== undefined) add('writes-wait', `Writes wait: ${writesObstacle}.`);
  sentences.push(...listRefusals(refused));
  for (const { resource, server, seconds } of locked) {
    const detour = 'reads of it go elsewhere, or are refused with 503';
    add('locked', `A lock on ${server} has held ${resource} for ${seconds} s: ${detour}.`);
  }
  return sentences;
}

/** Remedies on the page by the reason for which a replica is not used; the first that matches counts. */
const remediesOfReasons: readonly (readonly [reason: RegExp, remedy: string])[] = [
  [/^it (lags|receives)/, 'replica-lags'],
  [/^it is not in recovery/, 'replica-promoted'],
  [/^it (belongs|is ahead)/, 'replica-stranger'],
  [/^check refuses/, 'replica-unfit'],
  [/^PostgreSQL error 08P01/, 'pooler-login'],
  [/^PostgreSQL error/, 'login-refused'],
  [/(?:)/, 'replica-out'],
];

/** The alert GatewayDataOld has the same bound. */
const ageSecondsMax = 60;

function listDegradations(readiness: Readiness, workers: WorkersStatus | null): FaultSentence[] {
  const { replicas, primary, redis, unfit, reloadRefused, lacks } = readiness;
  const isJudged = canJudge(lacks);
  const sentences: FaultSentence[] = [];
  const add = (remedy: string, sentence: string): unknown => sentences.push([remedy, sentence]);
  for (const { name, state, reason, lagSeconds } of replicas) {
    const lag = lagSeconds === null ? '' : `; its lag is ${lagSeconds} s`;
    const [, remedy = ''] = remediesOfReasons.find(([words]) => words.test(reason ?? '')) ?? [];
    if (state === 'not used' && !isJudged) add('replica-out', `${name} is not used. ${notJudged}.`);
    else if (state === 'not used') add(remedy, endSentence(`${name} is not used: ${reason}${lag}`));
    else if (state === 'lagging' && isJudged) add('replica-lags', `${name} lags ${lagSeconds} s behind the primary.`);
  }
  const ages = replicas.flatMap(({ state, dataAgeSeconds }) =>
    state === 'used' || state === 'lagging' ? (dataAgeSeconds ?? []) : [],
  );
  const newest = Math.min(...ages);
  // Without a primary an idle database cannot be told from a late one.
  if (isJudged && primary !== null && ages.length > 0 && newest > ageSecondsMax)
    add('data-old', `The newest data is ${newest} s old: replay has stopped or the primary is unreachable.`);
  if (redis?.healthy === false)
    add(
      'redis-away',
      `${endSentence(`Redis cannot be used: ${redis.reason}`)} Each gateway enforces its share of the limits.`,
    );
  for (const { server, item, detail } of unfit) add('start', `At start-up ${server} did not pass: ${item}: ${detail}`);
  if (reloadRefused !== null)
    add('reload-refused', `The last reload was refused, so the previous definitions stay in use: ${reloadRefused}`);
  if (workers !== null && workers.reporting > 0 && workers.reporting < workers.configured)
    add('workers-die', `Only ${workers.reporting} of ${workers.configured} workers report.`);
  return sentences;
}
