import type { Readiness } from '../readiness.js';
import { type Counts, totalOf } from './sample.js';
import { count, duration } from './words.js';

/** Something that is wrong, as a sentence. */
export interface Fault {
  /** `failing` while reads or writes fail. */
  readonly level: 'degraded' | 'failing';
  readonly sentence: string;
}

export interface ReplicaStatus {
  readonly name: string;
  /** `lagging`: used, and near the lag from which on it is not. `primary`: a server of REPLICA_URLS that is no replica now, and no fault. */
  readonly state: 'used' | 'lagging' | 'not used' | 'primary';
  readonly reason: string | null;
  readonly lagSeconds: number | null;
  /** Time since the moment up to which its data is known to be current. */
  readonly dataAgeSeconds: number | null;
}

export interface WorkersStatus {
  readonly configured: number;
  /** Those that report to their parent. */
  readonly reporting: number;
}

interface Facts {
  readonly readiness: Readiness;
  readonly replicas: readonly ReplicaStatus[];
  readonly workers: WorkersStatus | null;
  readonly lagSecondsMax: number;
  readonly minute: Counts;
  readonly fiveMinutes: Counts;
}

interface FaultRow {
  readonly level: Fault['level'];
  readonly sentences: (facts: Facts) => readonly string[];
}

/** Age of the newest data at which it is old, as in the alert GatewayDataOld. */
const ageSecondsMax = 60;
/** Refusals of a minute, as in the alerts GatewayOverloaded and GatewayTokensTried. */
const refusalsMax = 60;

const when = (isWrong: boolean, sentence: string): string[] => (isWrong ? [sentence] : []);

/** The one table of faults. Those of counters follow the alert rules in deploy/prometheus, without their delay. */
const rows: readonly FaultRow[] = [
  {
    level: 'failing',
    sentences: ({ readiness: { reasons } }) => [
      ...when(reasons.includes('no worker'), 'No worker reports: requests are not answered.'),
      ...when(reasons.includes('no healthy replica'), 'Reads fail: no replica can be used.'),
      ...when(reasons.includes('stopping'), 'The gateway is stopping.'),
    ],
  },
  {
    level: 'failing',
    sentences: ({ readiness: { primary } }) =>
      when(primary?.healthy === false, `Writes fail: the primary cannot be used: ${primary?.reason}.`),
  },
  {
    level: 'failing',
    sentences: ({ minute }) =>
      ['replica_unavailable', 'primary_unavailable'].flatMap((code) => {
        const failed = minute.errors.get(code) ?? 0;
        return when(failed > 0, `${count(failed, 'request')} of the last minute failed: 503 ${code}.`);
      }),
  },
  {
    level: 'failing',
    sentences: ({ fiveMinutes }) => {
      const failed = fiveMinutes.errors.get('internal') ?? 0;
      const cause = 'the log has request_failed with the stack, or database_unfit with the correction';
      return when(failed > 0, `${count(failed, 'request')} of the last 5 minutes failed: 500 internal; ${cause}.`);
    },
  },
  {
    level: 'degraded',
    sentences: ({ replicas }) =>
      replicas.flatMap(({ name, state, reason, lagSeconds }) => {
        const lag = lagSeconds === null ? '' : `; its lag is ${duration(lagSeconds)}`;
        return when(state === 'not used', `${name} is not used: ${reason}${lag}.`);
      }),
  },
  {
    level: 'degraded',
    sentences: ({ replicas, lagSecondsMax }) =>
      replicas.flatMap(({ name, state, lagSeconds }) => {
        const lag = `${name} lags ${duration(lagSeconds ?? 0)} behind the primary`;
        return when(state === 'lagging', `${lag}; beyond ${duration(lagSecondsMax)} it is not used.`);
      }),
  },
  {
    level: 'degraded',
    sentences: ({ readiness, replicas }) => {
      if (readiness.primary === null) return []; // without a primary an idle database cannot be told from a late one
      const ages = replicas.flatMap(({ state, dataAgeSeconds }) =>
        dataAgeSeconds !== null && /used|lagging/.test(state) ? dataAgeSeconds : [],
      );
      const newest = Math.min(...ages);
      return when(
        ages.length > 0 && newest > ageSecondsMax,
        `The newest data is ${duration(newest)} old: replay stands still, or the primary is away.`,
      );
    },
  },
  {
    level: 'degraded',
    sentences: ({ readiness: { redis } }) =>
      when(redis?.healthy === false, `Redis is away: ${redis?.reason}. Each gateway enforces its share of the limits.`),
  },
  {
    level: 'degraded',
    sentences: ({ readiness: { unfit } }) =>
      unfit.map(({ server, item, detail }) => `At the start ${server} did not fit: ${item}: ${detail}`),
  },
  {
    level: 'degraded',
    sentences: ({ workers }) => {
      const { configured, reporting } = workers ?? { configured: 0, reporting: 0 };
      return when(reporting > 0 && reporting < configured, `Only ${reporting} of ${configured} workers report.`);
    },
  },
  {
    level: 'degraded',
    sentences: ({ fiveMinutes }) => {
      const restarts = totalOf(fiveMinutes.workerRestarts);
      return when(restarts > 0, `${count(restarts, 'worker')} died in the last 5 minutes, see worker_died in the log.`);
    },
  },
  {
    level: 'degraded',
    sentences: ({ minute }) => {
      const refused = minute.errors.get('overloaded') ?? 0;
      return when(refused > refusalsMax, `Overloaded: ${count(refused, 'request')} of the last minute got 503.`);
    },
  },
  {
    level: 'degraded',
    sentences: ({ minute }) =>
      when(
        (minute.limitHits.get('address') ?? 0) > refusalsMax,
        'A client tries tokens, or repeats a refused token: more than 60 refusals by address in the last minute.',
      ),
  },
  {
    level: 'degraded',
    sentences: ({ fiveMinutes }) => {
      const broken = totalOf(fiveMinutes.brokenPages);
      return when(broken > 0, `${count(broken, 'page')} of the last 5 minutes broke off before the end.`);
    },
  },
  {
    level: 'degraded',
    sentences: ({ fiveMinutes }) => {
      const failed = [...fiveMinutes.decodeErrors].filter(([of, n]) => n > 0 && /unknown_key|bad_tag/.test(of));
      const times = count(totalOf(new Map(failed)), 'time');
      const places = failed.slice(0, 3).map(([of]) => of);
      const more = failed.length > 3 ? ` and ${failed.length - 3} more` : '';
      const sentence = `Stored values did not decode ${times} in the last 5 minutes: ${places.join(', ')}${more}.`;
      return when(failed.length > 0, sentence);
    },
  },
  {
    level: 'degraded',
    sentences: ({ fiveMinutes }) =>
      when(
        totalOf(fiveMinutes.decryptMismatches) > 0,
        'The batched decryption refused a value that node:crypto opened: set DECRYPT=native, and report it.',
      ),
  },
];

/** Everything that is wrong, the worst first. */
export function faultsOf(facts: Facts): Fault[] {
  return rows.flatMap(({ level, sentences }) => sentences(facts).map((sentence) => ({ level, sentence })));
}
