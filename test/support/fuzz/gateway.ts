import { type Gateway, startGateway } from '../../../src/serve/gateway.js';
import type { OpenApiDocument } from '../../../src/serve/openapi/document.js';
import type { Settings } from '../../../src/settings.js';
import { canariesIn } from './canaries.js';
import { type FuzzReport, fuzz } from './fuzz.js';
import { pictureMarks } from './pictures.js';
import { tokenMark } from './properties.js';
import { makeWorld, type Sql, type World } from './world.js';

interface FuzzedGateway {
  readonly settings: Settings;
  readonly sql: Sql;
  readonly caughtUp: () => Promise<void>;
  readonly seed: number;
  readonly requests: number;
  readonly onProgress?: (done: number) => void;
}

/** The outcome of the requests, and in `faults` all that log, metrics and database show of them and must not. */
export interface FuzzedReport extends FuzzReport {
  readonly faults: readonly string[];
  readonly logLines: number;
  readonly workspaces: number;
}

/** Sends requests of every kind to a gateway with these settings over a database of many workspaces. */
export async function fuzzGateway({ settings, sql, caughtUp, ...how }: FuzzedGateway): Promise<FuzzedReport> {
  const world = await makeWorld(sql, JSON.parse(settings.dataKeys) as Record<string, string>, 24);
  await caughtUp();
  const log = new LogWatch(world);
  const gateway = await startGateway({ ...settings, ...fuzzSettings }, log);
  try {
    const document = (await (await fetch(`${gateway.url}/api/v1/openapi.json`)).json()) as OpenApiDocument;
    const before = new Date();
    const stateBefore = await untouched(sql, before);
    const report = await fuzz({ origin: gateway.url, document, world, parallel: 16, ...how });
    const stateAfter = await untouched(sql, before);
    const faults = [
      ...(report.failure === null ? [] : [report.failure]),
      ...log.faults,
      ...(await metricsFaults(gateway)),
      ...(await disagreements(sql)),
      ...stateAfter.filter((digest) => !stateBefore.includes(digest)).map((digest) => `changed: ${digest}`),
    ];
    return { ...report, faults, logLines: log.lines, workspaces: world.workspaces.length };
  } finally {
    await gateway.stop();
  }
}

/**
 * Limits out of the way, and bounds small enough that pages are read in several chunks. Waiting is long, as the fuzzer
 * shares the gateway's process and processors.
 */
const fuzzSettings: Partial<Settings> = {
  rateLimitPerMinute: 100_000_000,
  authFailuresPerMinute: 100_000_000,
  publicRequestsPerMinute: 100_000_000,
  logLevel: 'trace',
  trustedProxyHops: 1,
  chunkRowsMax: 50,
  largePagesPerToken: 100,
  largePagesPerWorkspace: 100,
  tokenCacheMax: 100,
  pageMemoryMax: 200,
  requestTimeoutMs: 2000,
  headersTimeoutMs: 2000,
  detailWaitMs: 10_000,
  probeDeadlineMs: 10_000,
  connectTimeoutMs: 10_000,
  freshnessWaitMs: 10_000,
  primaryReadsPerSecond: 10_000,
};

/** Names metrics of the ops listener that differ from those of a gateway at rest. */
async function metricsFaults({ opsUrl, replicas }: Gateway): Promise<string[]> {
  const [live, ready, metrics] = await Promise.all(
    ['/livez', '/readyz', '/metrics'].map(async (path) => {
      const response = await fetch(opsUrl + path);
      return { status: response.status, text: await response.text() };
    }),
  );
  const text = metrics?.text ?? '';
  const busy = text.match(/^gateway_(?:pool_in_flight|pool_waiting|large_pages)(?:\{.*\})? [1-9].*$/gm) ?? [];
  return [
    ...(live?.status === 200 ? [] : ['/livez']),
    ...(ready?.status === 200 ? [] : ['/readyz']),
    ...replicas.filter(({ state }) => !state.healthy).map(() => 'a replica was taken out'),
    ...busy,
    ...canariesIn(text).map(({ kind }) => `a canary ${kind} in the metrics`),
    ...(tokenMark.test(text) ? ['a token in the metrics'] : []),
  ];
}

/** Reads every line the gateway logs, as its destination, and keeps what should not be there. */
class LogWatch {
  readonly #world: World;
  readonly faults: string[] = [];
  lines = 0;

  constructor(world: World) {
    this.#world = world;
  }

  write(line: string): void {
    this.lines++;
    const marks = [tokenMark, pictureMarks, /\benc:v\d/, /"(?:request_failed|database_unfit)"/].flatMap(
      (mark) => mark.exec(line)?.[0] ?? [],
    );
    const canaries = canariesIn(line).map(({ kind }) => `a canary ${kind}`);
    const secrets = this.#world.secrets.filter((secret) => line.includes(secret));
    for (const what of [...marks, ...canaries, ...secrets])
      if (this.faults.length < 20) this.faults.push(`a log line holds ${what}: ${line.slice(0, 1000)}`);
  }
}

/** No request may change these tables, nor these columns of installations. */
const untouchable: readonly (readonly [table: string, row: string])[] = [
  ...['workspaces', 'users', 'api_tokens', 'klanten', 'werkbonnen', 'werkbon_handelingen', 'werkbon_uren'].map(
    (table) => [table, 't::text'] as const,
  ),
  [
    'installaties',
    'concat_ws(chr(31), t.id, t.workspace_id, t.koudemiddel, t.koudemiddel_gwp, t.vulling_kg, t.interne_notities, t.lmra_verplicht, t.created_at)',
  ],
  ['logboeken', 't::text'],
];

/** Reads rows that writes through the API do not change; `before` limits them to rows that existed then. */
async function untouched(sql: Sql, before: Date): Promise<string[]> {
  const digests: string[] = [];
  for (const [table, row] of untouchable) {
    const since = { installaties: 'where t.created_at <= $1', logboeken: 'where t.tijdstip <= $1' }[table] ?? '';
    const [digest] = await sql<{ rows: string; sum: string }>(
      `select count(*) as rows, coalesce(sum(hashtextextended(${row}, 0)::numeric), 0) as sum from app.${table} t ${since}`,
      since === '' ? [] : [before],
    );
    digests.push(`${table}: ${digest?.rows} rows, ${digest?.sum}`);
  }
  return digests;
}

/** Names everything about the written installations that does not agree with the audit log or with the tenant wall. */
async function disagreements(sql: Sql): Promise<string[]> {
  const found: string[] = [];
  for (const [what, text] of checks) {
    const rows = await sql<Record<string, unknown>>(text);
    if (rows.length > 0) found.push(`${rows.length} ${what}, such as ${JSON.stringify(rows[0]).slice(0, 300)}`);
  }
  return found;
}

const checks: readonly (readonly [what: string, text: string])[] = [
  [
    'installations whose version is not that of their audit entries',
    `select i.id, i.version, a.changed, a.created
     from app.installaties i
     left join (select entiteit_id, count(*) filter (where actie = 'gewijzigd') as changed,
                  count(*) filter (where actie = 'aangemaakt') as created
                from app.logboeken where entiteit = 'installatie' and actor_type = 'token' group by 1) a
       on a.entiteit_id = i.id::text
     where i.version <> 1 + coalesce(a.changed, 0) or coalesce(a.created, 0) <> (i.koudemiddel is null)::int`,
  ],
  [
    'audit entries of a token that are of another workspace than the token or the installation',
    `select l.id from app.logboeken l
     left join app.api_tokens t on t.id::text = l.actor_id left join app.installaties i on i.id::text = l.entiteit_id
     where l.actor_type = 'token' and (t.workspace_id is distinct from l.workspace_id or i.workspace_id is distinct from l.workspace_id)`,
  ],
  [
    'stored outcomes without a status, or of another workspace than their token or record',
    `select k.key from gateway.idempotency k
     join app.api_tokens t on t.id = k.token_id left join app.installaties i on i.id::text = k.record_id
     where k.status is null or t.workspace_id::text <> k.workspace_id or i.workspace_id::text is distinct from k.workspace_id`,
  ],
  [
    'writes that were stored without an audit entry, or the other way round',
    `select * from (select count(*) filter (where status = 201) as stored from gateway.idempotency) k,
       (select count(*) as audited from app.logboeken where actor_type = 'token' and actie = 'aangemaakt') a
     where stored <> audited`,
  ],
];
