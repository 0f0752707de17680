import { createHash } from 'node:crypto';
import { idOrNull } from '../db/id.js';
import type { Caller } from '../db/statement.js';
import type { WriteValidators } from '../definition/write-validators.js';
import { invalid, Problem } from '../errors.js';
import { type EntityTag, parseEntityTags } from '../read/etag.js';
import { parseIdempotencyKey } from './idempotency-key.js';
import { bodyDepthMax, type Json, parseStrictJson } from './strict-json.js';

/** A write whose every part has been checked; nothing of it has reached the primary. */
export interface WriteRequest {
  readonly caller: Caller;
  readonly key: string;
  /** SHA-256 of what makes two requests the same: method, path, If-Match and canonical body. */
  readonly fingerprint: Buffer;
  /** The members given, in PostgreSQL's text form. */
  readonly members: Readonly<Record<string, string | null>>;
  /** Null creates; otherwise which record in which version. */
  readonly target: Target | null;
  /** Whether the token may read the resource, and so gets the whole record back. */
  readonly mayRead: boolean;
}

export interface Target {
  /** As bound: null when no record can have it. */
  readonly id: string | null;
  readonly ifMatch: readonly EntityTag[];
}

/** What HTTP brought: header texts and bytes. */
export interface RawWrite {
  readonly method: string;
  readonly path: string;
  readonly id: string | null;
  readonly idempotencyKey: { readonly value: string | undefined; readonly timesSent: number };
  readonly ifMatch: string | undefined;
  readonly body: Buffer;
}

/** Headers → 428 → body, in this order. Throws Problems; for the body with every fault. */
export function parseWrite(rules: WriteValidators, caller: Caller, mayRead: boolean, raw: RawWrite): WriteRequest {
  const key = parseIdempotencyKey(raw.idempotencyKey.value, raw.idempotencyKey.timesSent);
  const target = raw.id === null ? null : { id: idOrNull('uuid', raw.id), ifMatch: parseIfMatch(raw.ifMatch) };
  const body = parseBody(raw.body);
  const faults = target === null ? rules.create(body) : rules.patch(body);
  if (faults.length > 0) throw invalid(faults);
  const given = body as Readonly<Record<string, string | number | boolean | null>>;
  const members = Object.fromEntries(
    Object.entries(given).map(([name, value]) => [name, value === null ? null : String(value)]),
  );
  const identity = [
    raw.method,
    raw.path,
    raw.ifMatch?.trim() ?? '',
    Object.entries(given).sort(([a], [b]) => (a < b ? -1 : 1)),
  ];
  const fingerprint = createHash('sha256').update(JSON.stringify(identity)).digest();
  return { caller, key, fingerprint, members, target, mayRead };
}

function parseIfMatch(header: string | undefined): readonly EntityTag[] {
  if (header === undefined) {
    throw new Problem('precondition_required', 'Send If-Match with the ETag of the version you change.');
  }
  const tags = parseEntityTags(header);
  if (tags === undefined || tags === '*') {
    throw new Problem(
      'if_match_invalid',
      'If-Match must name the entity tags of versions, such as "v3"; * is not accepted.',
    );
  }
  return tags;
}

function parseBody(bytes: Buffer): Json {
  const parsed = parseStrictJson(bytes, bodyDepthMax);
  if ('faults' in parsed) throw invalid(parsed.faults, 'malformed_json');
  return parsed.value;
}
