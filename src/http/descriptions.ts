import { createHash } from 'node:crypto';
import type { Resource } from '../definition/resource.js';
import type { OpenApiOptions } from '../openapi/values.js';
import { matchesWeakly, parseEntityTags, type Reply } from '../read/reply.js';
import { chooseEncoding, compressed, type Encoding, encodingsOf } from './encodings.js';

/** The descriptions of the API. Each is made, and its code loaded, at its first request: no start waits for it. */
export interface Descriptions {
  readonly index: FixedBody;
  readonly openapi: FixedBody;
  /** The documentation page; `servedByApi`: it is below the address of the API. */
  readonly docs: (servedByApi: boolean) => FixedBody;
}

export function descriptions(resources: readonly Resource[], options: OpenApiOptions): Descriptions {
  const openapi = async () => (await import('../openapi/openapi.js')).openapi(resources, options);
  return {
    index: new FixedBody(async () => {
      const { apiIndex } = await import('../openapi/values.js');
      return { text: JSON.stringify(apiIndex(resources, options)) };
    }),
    openapi: new FixedBody(async () => ({ text: JSON.stringify(await openapi()) })),
    docs: (servedByApi) =>
      new FixedBody(async () => {
        const { docsPage } = await import('../openapi/page.js');
        const { html, policy } = docsPage(await openapi(), servedByApi);
        return { text: html, headers: pageHeaders(policy) };
      }),
  };
}

/** Headers of a page of HTML. Browsers keep it and ask by its ETag. */
const pageHeaders = (policy: string) => ({
  'Content-Type': 'text/html; charset=utf-8',
  'Content-Security-Policy': `${policy}; frame-ancestors 'none'`,
  'Cache-Control': 'no-cache',
});

/** The smallest first. A body is compressed once; more for brotli takes seconds for the docs page, and gains 8 %. */
const fixedEncodings = encodingsOf('br:9 gzip:9');

/** A text, and headers of its own. */
interface FixedText {
  readonly text: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The headers of a body in a content coding, its strong ETag among them, and its bytes. */
interface Representation {
  readonly etag: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/**
 * A body that stays the same while the gateway runs. Each content coding of it is made once, at its first use, and has a
 * strong ETag of its own, because other bytes need another validator (RFC 9110 §8.8.3.3).
 */
export class FixedBody {
  readonly #make: () => Promise<FixedText>;
  readonly #made = new Map<Encoding | undefined, Promise<Representation>>();

  /** `make` is called once for each content coding, and must return the same every time. */
  constructor(make: () => Promise<FixedText>) {
    this.#make = make;
  }

  /** Replies 304 if If-None-Match names the representation that Accept-Encoding prefers, else 200 with it. */
  async reply(acceptEncoding: string | undefined, ifNoneMatch: string | undefined): Promise<FixedReply> {
    const encoding = chooseEncoding(acceptEncoding, fixedEncodings);
    const made = this.#made.get(encoding) ?? this.#represent(encoding);
    this.#made.set(encoding, made);
    made.catch(() => this.#made.delete(encoding)); // the next request tries again
    const { etag, headers, body } = await made;
    const known = ifNoneMatch === undefined ? undefined : parseEntityTags(ifNoneMatch);
    if (known !== undefined && matchesWeakly(known, etag)) return { status: 304, headers, body: null, databaseMs: 0 };
    const coded = encoding === undefined ? headers : { ...headers, 'Content-Encoding': encoding.name };
    return { status: 200, headers: coded, body, databaseMs: 0 };
  }

  async #represent(encoding: Encoding | undefined): Promise<Representation> {
    const { text, headers } = await this.#make();
    const body = encoding === undefined ? Buffer.from(text) : await compressed(text, encoding);
    const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`;
    return { etag, headers: { ETag: etag, Vary: 'Accept-Encoding', ...headers }, body };
  }
}

/** A reply whose whole body is in memory. */
type FixedReply = Reply & { readonly body: Buffer | null };
