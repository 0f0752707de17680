import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { prepareSql, type Statement, type Values } from '../src/postgres/statement.js';
import { walPositionStatement } from '../src/postgres/wal-position.js';
import { loadResources } from '../src/resource/definition/load.js';
import type { Resource, ResourceWrite } from '../src/resource/definition/resource.js';
import { compileWriteStatements } from '../src/resource/statements/write-statements.js';
import { treeCpuMsOf } from './processes.js';

/**
 * Creates of installations without a server: one connection for each of the customers sends its next transaction when the last is answered.
 */
export interface Creates {
  readonly url: string;
  /** The workspace with its MAC. */
  readonly mac: string;
  readonly tokenId: string;
  readonly customers: readonly string[];
  readonly primaryPid: number;
  /** Before the load, not counted: this process compiles its code meanwhile. */
  readonly leadInSeconds: number;
  readonly seconds: number;
}

export interface CreatesResult {
  readonly creates: number;
  readonly perSecond: number;
  /** Processor time that each create cost the process and the primary, in microseconds. */
  readonly cpuUs: number;
  readonly primaryCpuUs: number;
}

// The creates as JSON in the argument, the result as JSON on stdout.
const { url, mac, tokenId, customers, primaryPid, leadInSeconds, seconds } = JSON.parse(
  process.argv[2] as string,
) as Creates;
const resource = loadResources('').find(({ name }) => name === 'installaties') as Resource & { write: ResourceWrite };
const { claim, create } = compileWriteStatements(resource);
const plain = (text: string, parameters: string[] = []): Statement => prepareSql(text, text, parameters);
const statements = [
  plain('begin'),
  plain("select set_config('gateway.workspace_id', $1, true)", ['mac']),
  claim,
  create,
  plain('commit'),
  // The gateway sends it with each COMMIT: later reads wait until their replica has replayed the write.
  plain(walPositionStatement),
];
const { actorType = '', created = '' } = resource.write.audit || {};
const constants: Values = {
  ...Object.fromEntries(create.parameters.map((name) => [name, null])),
  ...{ mac, naam: 'Koelcel', 'may-read': 't', 'claim.token': tokenId, 'claim.fingerprint': Buffer.alloc(32) },
  ...{ 'log.entity': resource.auditEntity ?? '', 'log.actorType': actorType },
  'log.action': created,
  'log.changes': JSON.stringify([{ veld: 'naam', oud: null, nieuw: 'Koelcel' }]),
};

const clients = await Promise.all(
  customers.map(async (customerId) => {
    const client = new pg.Client({ connectionString: url, pipeline: true } as pg.ClientConfig);
    await client.connect();
    return { client, customerId };
  }),
);
await runFor(leadInSeconds * 1000);
const [startedMs, own, primaryMs] = [performance.now(), process.cpuUsage(), treeCpuMsOf(primaryPid)];
const creates = await runFor(seconds * 1000);
const takenMs = performance.now() - startedMs;
const { user, system } = process.cpuUsage(own);
process.stdout.write(
  JSON.stringify({
    creates,
    perSecond: (creates * 1000) / takenMs,
    cpuUs: (user + system) / creates,
    primaryCpuUs: (1000 * (treeCpuMsOf(primaryPid) - primaryMs)) / creates,
  } satisfies CreatesResult),
);
process.exit(0);

async function runFor(ms: number): Promise<number> {
  const endMs = performance.now() + ms;
  let count = 0;
  const repeat = async ({ client, customerId }: (typeof clients)[number]): Promise<void> => {
    for (; performance.now() < endMs; count++) {
      const values: Values = { ...constants, id: randomUUID(), customerId, 'claim.key': randomUUID() };
      await Promise.all(
        statements.map((each) =>
          client.query({ ...each, values: each.parameters.map((name) => values[name]) } as pg.QueryConfig),
        ),
      );
    }
  };
  await Promise.all(clients.map(repeat));
  return count;
}
