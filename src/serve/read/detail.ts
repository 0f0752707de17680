import { makeNotFound, Problem } from '../../base/errors.js';
import type { Caller, Statement } from '../../postgres/statement.js';
import type { CompiledResource } from '../../resource/compiled.js';
import { getType } from '../../resource/definition/field-types.js';
import { type EntityTag, makeEtag, matchesStrongly, matchesWeakly, parseEntityTags } from '../entity-tags.js';
import { makeDataAsOf, type Reply } from '../reply.js';
import { type ReadDeps, runOnReadTarget } from './routing.js';

export interface DetailRequest {
  readonly compiled: CompiledResource;
  readonly caller: Caller;
  /** Null if no record can have the id. */
  readonly id: string | null;
  readonly ifMatch: readonly EntityTag[] | '*' | null;
  readonly ifNoneMatch: readonly EntityTag[] | '*' | null;
}

/** Throws Problem if_match_invalid; a damaged If-None-Match is no condition. */
export function parseDetail(
  compiled: CompiledResource,
  caller: Caller,
  id: string,
  headers: { ifMatch: string | undefined; ifNoneMatch: string | undefined },
): DetailRequest {
  const isConditional = compiled.tag !== null;
  const ifMatch = isConditional && headers.ifMatch !== undefined ? parseEntityTags(headers.ifMatch) : null;
  if (ifMatch === undefined) throw new Problem('if_match_invalid', 'If-Match must be a list of entity tags.');
  const ifNoneMatch =
    isConditional && headers.ifNoneMatch !== undefined ? (parseEntityTags(headers.ifNoneMatch) ?? null) : null;
  const isId = getType(compiled.resource.idType).isPrinted?.(id) === true;
  return { compiled, caller, id: isId ? id : null, ifMatch, ifNoneMatch };
}

/** Runs one statement on one replica. Throws Problem not_found, precondition_failed. */
export async function readDetail(deps: ReadDeps, request: DetailRequest): Promise<Reply> {
  const { compiled, caller } = request;
  const startedMs = performance.now();
  const run = {
    statement: compiled.statements.detail as Statement,
    workspace: caller.workspace,
    values: { id: request.id },
  };
  const { record, asOfMs } = await runOnReadTarget(deps, request, {}, async ({ target, asOfMs }) => {
    const records: { readonly etag: string | null; readonly json: string }[] = []; // one record, whose tag is null without versions
    await target.short.run(run, { waitMs: deps.detailWaitMs }, (row) => {
      const etag = compiled.tag && makeEtag((at) => row.getText(at), compiled.tag);
      records[0] = { etag, json: compiled.serializer.toJson(row, caller.workspace) };
    });
    return { record: records[0], asOfMs };
  });
  const databaseMs = performance.now() - startedMs;
  if (record === undefined) throw makeNotFound();
  const headers = makeDataAsOf(asOfMs);
  const { etag } = record;
  if (etag !== null) {
    headers.ETag = etag;
    if (request.ifMatch !== null && !matchesStrongly(request.ifMatch, etag))
      throw new Problem('precondition_failed', 'The record has another version.', { headers });
    if (request.ifNoneMatch !== null && matchesWeakly(request.ifNoneMatch, etag))
      return { status: 304, headers, body: null, databaseMs };
  }
  const content = { resource: compiled.resource.name, personal: compiled.serializer.personal, records: 1 };
  return { status: 200, headers, body: record.json, content, databaseMs };
}
