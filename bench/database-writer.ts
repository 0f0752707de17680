import { randomUUID } from 'node:crypto';
import pg from 'pg';
import type { Statement, Values } from '../src/db/statement.js';
import { type CreateStatements, compileCreate } from '../src/definition/create-statements.js';
import { loadResources } from '../src/definition/load.js';
import type { Resource, ResourceWrite } from '../src/definition/resource.js';
import {
  claimedKey,
  compileAuditStatement,
  compileWriteStatements,
  type WriteStatements,
} from '../src/definition/write-statements.js';
import { claim, store } from '../src/write/transaction.js';

/** PostgreSQL itself, with parts of the gateway's transaction. */
export interface DatabaseTarget {
  readonly url: string;
  readonly tokenId: string;
  readonly hasIdempotency: boolean;
  readonly hasAudit: boolean;
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
/** As many bytes as an answer of the gateway. */
export const answer = 'x'.repeat(500);

/** Connects; each write is the gateway's own statements in one transaction, all sent before the first is answered. */
export async function openWriter(
  { url, ...parts }: DatabaseTarget,
  workspace: string,
  customerId: string,
): Promise<DatabaseWriter> {
  const resource = loadResources('').find(({ name }) => name === 'installaties') as Resource & { write: ResourceWrite };
  const { insert, update, lock, references } = statementsOf(resource, parts.hasIdempotency);
  const customerExists = references.get('customerId') as Statement;
  const log = resource.write.audit;
  const audit = log && compileAuditStatement(resource, log.view);
  const write = { ...resource.write, audit: parts.hasAudit ? log : null };
  const create = compileCreate({ ...resource, write }) as CreateStatements;
  const client = new pg.Client({ connectionString: url, pipeline: true } as pg.ClientConfig);
  await client.connect();
  const nothing = Object.fromEntries([...insert.parameters, ...update.parameters].map((name) => [name, null]));
  const run = (statement: Statement, values: Values): Promise<unknown> =>
    client.query({ ...statement, values: statement.parameters.map((name) => values[name]) } as pg.QueryConfig);
  return async (id, naam, isNew) => {
    const changes = JSON.stringify([{ veld: 'naam', oud: 'Koelcel', nieuw: naam }]);
    const key = randomUUID();
    const values: Values = {
      ...nothing,
      ...claimedKey(parts.tokenId, key),
      ...{ workspace, token: parts.tokenId, id, customerId, naam, changes },
      ...{ key, fingerprint: Buffer.alloc(32), status: isNew ? 201 : 200, version: '1', body: answer },
      ...{ entity: resource.auditEntity ?? '', action: log?.[isNew ? 'created' : 'changed'] ?? '' },
      actorType: log?.actorType ?? '',
    };
    if (isNew && parts.hasIdempotency) {
      const entry = {
        entity: values.entity,
        id,
        action: values.action,
        actorType: values.actorType,
        token: parts.tokenId,
        changes,
      };
      const logged = Object.fromEntries(Object.entries(entry).map(([name, value]) => [`log.${name}`, value]));
      const all = { ...values, ...logged, 'claim.fingerprint': values.fingerprint } as Values;
      const steps = [begin, guard, create.claim, create.full, commit];
      await Promise.all(steps.map((statement) => run(statement, all)));
      return;
    }
    await Promise.all([
      run(begin, {}),
      run(guard, values),
      parts.hasIdempotency && run(claim, values),
      isNew ? run(customerExists, { ...values, id: customerId }) : run(lock, values),
      run(isNew ? insert : update, values),
      parts.hasAudit && audit && run(audit, values),
      parts.hasIdempotency && run(store, values),
      run(commit, {}),
    ]);
  };
}

/** Without idempotency, the condition that the key is claimed is always true. */
function statementsOf(resource: Resource & { write: ResourceWrite }, hasIdempotency: boolean): WriteStatements {
  const statements = compileWriteStatements(resource);
  if (hasIdempotency) return statements;
  const claimed = /\(select status is null from \S+ where token_id = (\$\d+) and key = (\$\d+)\)/;
  const free = (statement: Statement): Statement => {
    if (!claimed.test(statement.text)) throw new Error(`${statement.name} has no such condition`);
    return { ...statement, text: statement.text.replace(claimed, '($1::text is not null and $2::text is not null)') };
  };
  return { ...statements, insert: free(statements.insert), lock: free(statements.lock) };
}
