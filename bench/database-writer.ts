import { randomUUID } from 'node:crypto';
import pg from 'pg';
import type { Statement, Values } from '../src/db/statement.js';
import { walPositionStatement } from '../src/db/wal-position.js';
import { loadResources } from '../src/definition/load.js';
import type { Resource, ResourceWrite } from '../src/definition/resource.js';
import { compileWriteStatements } from '../src/definition/write-statements.js';

/** PostgreSQL itself, with parts of the gateway's transaction. */
export interface DatabaseTarget {
  readonly url: string;
  readonly tokenId: string;
  readonly hasIdempotency: boolean;
  readonly hasAudit: boolean;
  readonly hasPosition: boolean;
}

/** Creates or changes the installation with the id. */
export type DatabaseWriter = (id: string, naam: string, isNew: boolean) => Promise<void>;

const begin: Statement = { name: 'begin', text: 'begin', parameters: [] };
const commit: Statement = { name: 'commit', text: 'commit', parameters: [] };
const guard: Statement = {
  name: 'guard',
  text: "select set_config('gateway.workspace_id', $1, true)",
  parameters: ['workspace'],
};
/** The gateway sends it with each COMMIT: later reads wait until their replica has replayed the write. */
const position: Statement = { name: 'position', text: walPositionStatement, parameters: [] };
/** As many bytes as an answer of the gateway. */
export const answer = 'x'.repeat(500);

/** Connects; each write is the gateway's own statements: one transaction and the position after it, all sent before the first is answered. */
export async function openWriter(
  { url, ...parts }: DatabaseTarget,
  workspace: string,
  customerId: string,
): Promise<DatabaseWriter> {
  const resource = loadResources('').find(({ name }) => name === 'installaties') as Resource & { write: ResourceWrite };
  const log = resource.write.audit;
  const write = { ...resource.write, audit: parts.hasAudit ? log : null };
  const { claim, lock, create, update } = compileWriteStatements({ ...resource, write });
  const client = new pg.Client({ connectionString: url, pipeline: true } as pg.ClientConfig);
  await client.connect();
  const nothing = Object.fromEntries([...create.parameters, ...update.parameters].map((name) => [name, null]));
  const run = (statement: Statement, values: Values): Promise<unknown> =>
    client.query({ ...statement, values: statement.parameters.map((name) => values[name]) } as pg.QueryConfig);
  const used = (statement: Statement): Statement => (parts.hasIdempotency ? statement : withoutKey(statement));
  const opening = [begin, guard, ...(parts.hasIdempotency ? [claim] : [])];
  const end = [commit, ...(parts.hasPosition ? [position] : [])];
  const [creating, updating] = [
    [...opening, used(create), ...end],
    [...opening, used(lock), used(update), ...end],
  ];
  return async (id, naam, isNew) => {
    const values: Values = {
      ...nothing,
      ...{ workspace, id, customerId, naam, 'may-read': 't' },
      ...{ 'claim.token': parts.tokenId, 'claim.key': randomUUID(), 'claim.fingerprint': Buffer.alloc(32) },
      ...{ 'log.entity': resource.auditEntity ?? '', 'log.actorType': log?.actorType ?? '' },
      'log.action': log?.[isNew ? 'created' : 'changed'] ?? '',
      'log.changes': JSON.stringify([{ veld: 'naam', oud: 'Koelcel', nieuw: naam }]),
    };
    await Promise.all((isNew ? creating : updating).map((statement) => run(statement, values)));
  };
}

/** The key counts as claimed, and the row is stored under none. */
function withoutKey(statement: Statement): Statement {
  const parts = [
    [
      /from gateway\.idempotency where token_id = (\$\d+) and key = (\$\d+) and status is null/,
      'where coalesce($1::text, $2::text) is not null',
    ],
    [
      /update gateway\.idempotency held set .*? may_read = (\$\d+),.*? where held\.token_id = (\$\d+) and held\.key = (\$\d+) returning held\.record/s,
      'select (written.*)::text as record from written where coalesce($1::text, $2::text, $3::text) is not null',
    ],
  ] as const;
  const text = parts.reduce((before, [pattern, free]) => before.replace(pattern, free), statement.text);
  if (text.includes('gateway.idempotency')) throw new Error(`${statement.name} still needs a key`);
  return { ...statement, text };
}
