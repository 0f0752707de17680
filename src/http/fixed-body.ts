import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { brotliCompress, gzip } from 'node:zlib';
import { matchesWeakly, parseEntityTags } from '../read/etag.js';
import type { Reply } from '../read/reply.js';
import { chooseEncoding } from './encodings.js';

/** The smallest first: a body is compressed once, so the time does not matter. */
const fixedEncodings = [
  { name: 'br', compress: promisify<Buffer, Buffer>(brotliCompress) },
  { name: 'gzip', compress: promisify<Buffer, Buffer>(gzip) },
] as const;
type FixedEncoding = (typeof fixedEncodings)[number];

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
  readonly #text: () => Promise<string>;
  readonly #made = new Map<FixedEncoding | undefined, Promise<Representation>>();

  /** `text` is called once for each content coding, and must return the same every time. */
  constructor(text: () => Promise<string>) {
    this.#text = text;
  }

  /** Replies 304 if If-None-Match names the representation that Accept-Encoding prefers, else 200 with it. */
  async reply(acceptEncoding: string | undefined, ifNoneMatch: string | undefined): Promise<FixedReply> {
    const encoding = chooseEncoding(acceptEncoding, fixedEncodings);
    const { bytes, etag } = await this.#representation(encoding);
    const headers = { ETag: etag, Vary: 'Accept-Encoding' };
    const known = ifNoneMatch === undefined ? undefined : parseEntityTags(ifNoneMatch);
    if (known !== undefined && matchesWeakly(known, etag)) return { status: 304, headers, body: null, databaseMs: 0 };
    const coded = encoding === undefined ? headers : { ...headers, 'Content-Encoding': encoding.name };
    return { status: 200, headers: coded, body: bytes, databaseMs: 0 };
  }

  #representation(encoding: FixedEncoding | undefined): Promise<Representation> {
    const made = this.#made.get(encoding) ?? represent(this.#text, encoding);
    this.#made.set(encoding, made);
    made.catch(() => this.#made.delete(encoding)); // the next request tries again
    return made;
  }
}

async function represent(text: () => Promise<string>, encoding: FixedEncoding | undefined): Promise<Representation> {
  const body = Buffer.from(await text());
  const bytes = encoding === undefined ? body : await encoding.compress(body);
  return { bytes, etag: `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"` };
}
