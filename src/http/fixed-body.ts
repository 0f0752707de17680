import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { brotliCompress, gzip } from 'node:zlib';
import { matchesWeakly, parseEntityTags } from '../read/etag.js';
import type { Reply } from '../read/reply.js';

const codings = {
  br: promisify<Buffer, Buffer>(brotliCompress),
  gzip: promisify<Buffer, Buffer>(gzip),
  identity: async (bytes: Buffer) => bytes,
} as const;
type Coding = keyof typeof codings;

/** A reply whose whole body is in memory. */
type FixedReply = Reply & { readonly body: Buffer | null };

interface Representation {
  readonly bytes: Buffer;
  readonly etag: string;
}

/**
 * A body that stays the same while the gateway runs. Each content coding of it is made once, at its first use, and has a
 * strong ETag of its own, because other bytes need another validator (RFC 9110 §8.8.3.3).
 */
export class FixedBody {
  readonly #bytes: Buffer;
  readonly #made = new Map<Coding, Promise<Representation>>();

  constructor(text: string) {
    this.#bytes = Buffer.from(text);
  }

  /** Replies 304 if If-None-Match names this representation, else 200 with it. */
  async reply(encoding: 'br' | 'gzip' | null, ifNoneMatch: string | undefined): Promise<FixedReply> {
    const { bytes, etag } = await this.#representation(encoding ?? 'identity');
    const headers = { ETag: etag, Vary: 'Accept-Encoding' };
    const known = ifNoneMatch === undefined ? undefined : parseEntityTags(ifNoneMatch);
    if (known !== undefined && matchesWeakly(known, etag)) return { status: 304, headers, body: null, databaseMs: 0 };
    const coded = encoding === null ? headers : { ...headers, 'Content-Encoding': encoding };
    return { status: 200, headers: coded, body: bytes, databaseMs: 0 };
  }

  #representation(coding: Coding): Promise<Representation> {
    const made = this.#made.get(coding) ?? represent(this.#bytes, coding);
    this.#made.set(coding, made);
    made.catch(() => this.#made.delete(coding)); // the next request tries again
    return made;
  }
}

async function represent(body: Buffer, coding: Coding): Promise<Representation> {
  const bytes = await codings[coding](body);
  return { bytes, etag: `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"` };
}
