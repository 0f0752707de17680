import { Problem } from '../errors.js';

const visible = /^[\x21-\x7e]{1,255}$/;

/**
 * The key of an Idempotency-Key header: 1–255 visible ASCII characters, bare or as a quoted string (RFC 8941 §3.3.3),
 * which mean the same key. Throws idempotency_key_missing, idempotency_key_invalid.
 */
export function parseIdempotencyKey(header: string | undefined, timesSent: number): string {
  if (header === undefined)
    throw new Problem('idempotency_key_missing', 'Send an Idempotency-Key header, new for every write.');
  const trimmed = header.trim();
  const quoted = /^"((?:[^"\\]|\\["\\])*)"$/.exec(trimmed);
  const key = quoted ? (quoted[1] as string).replace(/\\(.)/g, '$1') : trimmed;
  if (timesSent !== 1 || !visible.test(key) || (trimmed.startsWith('"') && !quoted)) {
    throw new Problem(
      'idempotency_key_invalid',
      'Idempotency-Key must be given once: 1 to 255 visible ASCII characters.',
    );
  }
  return key;
}
