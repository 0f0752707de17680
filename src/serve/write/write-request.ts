import { hash, randomUUID } from 'node:crypto';
import { makeInvalid, Problem } from '../../base/errors.js';
import type { Caller } from '../../postgres/statement.js';
import type { CompiledWrite } from '../../resource/compiled.js';
import { formatText, getType } from '../../resource/definition/field-types.js';
import { type EntityTag, parseEntityTags } from '../entity-tags.js';
import { bodyDepthMax, parseStrictJson } from './strict-json.js';

export interface WriteRequest {
  readonly caller: Caller;
  /** The key for a dry run differs from the client's, which it neither takes nor meets. */
  readonly key: string;
  readonly isDryRun: boolean;
  /** SHA-256 of method, path, If-Match and canonical body: equal for repetitions. */
  readonly fingerprint: Buffer;
  readonly members: Readonly<Record<string, string | null>>;
  /** Null creates a record. */
  readonly target: Target | null;
  /** If false, the response has only the write scope. */
  readonly mayRead: boolean;
}

export interface Target {
  /** Null if no record can have the id. */
  readonly id: string | null;
  readonly ifMatch: readonly EntityTag[];
}

export interface RawWrite {
  readonly method: string;
  readonly path: string;
  readonly id: string | null;
  readonly isDryRun: boolean;
  readonly idempotencyKey: { readonly value: string | undefined; readonly timesSent: number };
  readonly ifMatch: string | undefined;
  readonly body: Buffer;
}

/** Parses headers, then the body. Throws Problems; the Problem of a body names every fault. */
export function parseWrite(write: CompiledWrite, caller: Caller, mayRead: boolean, raw: RawWrite): WriteRequest {
  const { isDryRun } = raw;
  const clientKey = parseIdempotencyKey(raw.idempotencyKey);
  const key = isDryRun ? randomUUID() : clientKey;
  const target = raw.id === null ? null : parseTarget(write, raw.id, raw.ifMatch);
  const body = parseStrictJson(raw.body, bodyDepthMax);
  if ('faults' in body) throw makeInvalid(body.faults, 'malformed_json');
  const faults = target === null ? write.create(body.value) : write.patch(body.value);
  if (faults.length > 0) throw makeInvalid(faults);
  const values = body.value as Readonly<Record<string, string | number | boolean | null>>;
  const members: Record<string, string | null> = Object.create(null); // a member may have the name "constructor"
  for (const name in values) {
    const value = values[name] ?? null;
    members[name] = value === null ? null : formatText(value);
  }
  const sorted = Object.entries(values).sort(([a], [b]) => (a < b ? -1 : 1));
  const identity = [raw.method, raw.path, raw.ifMatch?.trim() ?? '', sorted];
  const fingerprint = hash('sha256', JSON.stringify(identity), 'buffer');
  return { caller, key, isDryRun, fingerprint, members, target, mayRead };
}

const visibleAscii = /^[\x21-\x7e]{1,255}$/;

/** Accepts 1 to 255 visible ASCII characters, bare or as a quoted string (RFC 8941 §3.3.3). */
function parseIdempotencyKey({ value, timesSent }: RawWrite['idempotencyKey']): string {
  if (value === undefined)
    throw new Problem('idempotency_key_missing', 'Send an Idempotency-Key header, new for every write.');
  const trimmed = value.trim();
  const quoted = /^"((?:[^"\\]|\\["\\])*)"$/.exec(trimmed);
  const key = quoted ? (quoted[1] as string).replace(/\\(.)/g, '$1') : trimmed;
  if (timesSent !== 1 || !visibleAscii.test(key) || (trimmed.startsWith('"') && !quoted)) {
    const detail = 'Idempotency-Key must be given once: 1 to 255 visible ASCII characters.';
    throw new Problem('idempotency_key_invalid', detail);
  }
  return key;
}

function parseTarget({ idType }: CompiledWrite, id: string, header: string | undefined): Target {
  if (header === undefined)
    throw new Problem('precondition_required', 'Send If-Match with the ETag of the version you change.');
  const ifMatch = parseEntityTags(header);
  const detail = 'If-Match must name the entity tags of versions, such as "v3"; * is not accepted.';
  if (ifMatch === undefined || ifMatch === '*') throw new Problem('if_match_invalid', detail);
  return { id: getType(idType).isPrinted?.(id) ? id : null, ifMatch };
}
