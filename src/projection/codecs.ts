import { isUtf8 } from 'node:buffer';
import { createDecipheriv, type KeyObject } from 'node:crypto';
import type { Keyring } from './keyring.js';

/** Why a stored value could not be decoded. A code only: it may be logged and counted, the value may not. */
export type DecodeReason = 'bad_format' | 'unknown_key' | 'legacy_refused' | 'bad_tag' | 'bad_utf8';

/** A stored value could not be decoded. Carries the reason and nothing of the value. */
export class DecodeError extends Error {
  override readonly name = 'DecodeError';
  constructor(readonly reason: DecodeReason) {
    super(reason);
  }
}

/** Decodes one cell of one column. `workspace` and `row` are ids as text. Throws DecodeError. */
export type CellDecoder = (stored: string, workspace: string, row: string) => string;

/** What a codec may rely on. `legacy`: whether "enc:v1" values, which are bound to no cell, may still be read. */
export interface CodecOptions {
  readonly keyring: Keyring;
  readonly legacy: boolean;
}

/** Makes the decoder of one column; all that does not depend on the cell is done here. */
type Codec = (options: CodecOptions, table: string, column: string) => CellDecoder;

const codecs = {
  plain: () => (stored) => stored,
  base64: () => (stored) => text(bytesOf(stored)),
  'aes-256-gcm': aes256Gcm,
} satisfies Record<string, Codec>;

/** The codecs a resource definition may name. */
export type CodecName = keyof typeof codecs;

/**
 * The decoder for the cells of `table`.`column`, to be made once at start-up.
 * Throws an Error on a name that is no codec, so that a bad resource definition refuses to boot.
 */
export function compileCodec(name: CodecName, options: CodecOptions, table: string, column: string): CellDecoder {
  if (!Object.hasOwn(codecs, name)) throw new Error(`No codec "${name}" for ${table}.${column}.`);
  return codecs[name](options, table, column);
}

const ivBytes = 12;
const tagBytes = 16;
const prefixLength = 'enc:v2:'.length;
const authTagLength = { authTagLength: tagBytes };

/**
 * AES-256-GCM (NIST SP 800-38D). Stored: "enc:v2:<key id>:<base64 of iv(12) ‖ ciphertext ‖ tag(16)>", authenticated
 * together with the place it stands in, "<workspace>|<table>|<column>|<row>", so that a value copied from another
 * cell does not decode. "enc:v1:…" is the same without that binding. The version is no secret and needs no
 * protection of its own: a v2 value relabelled v1 fails its tag.
 */
function aes256Gcm({ keyring, legacy }: CodecOptions, table: string, column: string): CellDecoder {
  const place = `|${table}|${column}|`;
  return (stored, workspace, row) => {
    const bound = stored.startsWith('enc:v2:');
    if (!bound && !stored.startsWith('enc:v1:')) throw new DecodeError('bad_format');
    const keyEnd = stored.indexOf(':', prefixLength);
    if (keyEnd < 0) throw new DecodeError('bad_format');
    if (!bound && !legacy) throw new DecodeError('legacy_refused');
    const key = keyring.get(stored.slice(prefixLength, keyEnd));
    if (key === undefined) throw new DecodeError('unknown_key');
    const sealed = bytesOf(stored.slice(keyEnd + 1));
    return text(open(key, sealed, bound ? workspace + place + row : undefined));
  };
}

/** Decrypts iv ‖ ciphertext ‖ tag; what comes back is authentic. */
function open(key: KeyObject, sealed: Buffer, associated: string | undefined): Buffer {
  const tagStart = sealed.length - tagBytes;
  if (tagStart < ivBytes) throw new DecodeError('bad_format');
  const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(0, ivBytes), authTagLength);
  if (associated !== undefined) decipher.setAAD(Buffer.from(associated));
  decipher.setAuthTag(sealed.subarray(tagStart));
  const opened = decipher.update(sealed.subarray(ivBytes, tagStart));
  try {
    decipher.final();
  } catch {
    throw new DecodeError('bad_tag');
  }
  return opened;
}

/** The bytes of canonical base64 (RFC 4648 §4, padded, no line breaks, unused bits zero). */
function bytesOf(base64: string): Buffer {
  const bytes = Buffer.from(base64, 'base64');
  // Buffer.from skips what is not base64; comparing what it encodes back to is cheaper than a regular expression.
  if (bytes.toString('base64') !== base64) throw new DecodeError('bad_format');
  return bytes;
}

/** The text of valid UTF-8. A byte order mark stays: it is part of the value. */
function text(bytes: Buffer): string {
  if (!isUtf8(bytes)) throw new DecodeError('bad_utf8');
  return bytes.toString('utf8');
}
