import { createHash } from 'node:crypto';
import type { Resource } from '../../resource/definition/resource.js';
import { openapi } from '../openapi/openapi.js';
import { docsPage } from '../openapi/page.js';
import { apiIndex, type OpenApiOptions } from '../openapi/values.js';
import { matchesWeakly, parseEntityTags, type Reply } from '../read/reply.js';
import { chooseEncoding, compress } from './encodings.js';

/** Each is made at its first request, so that no start waits for it. */
export interface Descriptions {
  readonly index: FixedBody;
  readonly openapi: FixedBody;
  /** `servedByApi`: the page is below the address of the API. */
  readonly docs: (servedByApi: boolean) => FixedBody;
}

export function descriptions(resources: readonly Resource[], options: OpenApiOptions): Descriptions {
  const document = () => openapi(resources, options);
  return {
    index: new FixedBody(async () => ({ text: JSON.stringify(apiIndex(resources, options)) })),
    openapi: new FixedBody(async () => ({ text: JSON.stringify(document()) })),
    docs: (servedByApi) =>
      new FixedBody(async () => {
        const { html, policy } = docsPage(document(), servedByApi);
        return { text: html, headers: pageHeaders(policy) };
      }),
  };
}

/** Browsers keep it and ask by its ETag. */
const pageHeaders = (policy: string) => ({
  'Content-Type': 'text/html; charset=utf-8',
  'Content-Security-Policy': `${policy}; frame-ancestors 'none'`,
  'Cache-Control': 'no-cache',
});

interface FixedText {
  readonly text: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Made at its first use. Each content coding has an ETag of its own (RFC 9110 §8.8.3.3). */
export class FixedBody {
  readonly #make: () => Promise<FixedText>;
  #made: ReturnType<typeof withHash> | undefined;

  constructor(make: () => Promise<FixedText>) {
    this.#make = make;
  }

  /** 304 if If-None-Match names the representation that Accept-Encoding prefers, otherwise 200. */
  async reply(acceptEncoding: string | undefined, ifNoneMatch = ''): Promise<FixedReply> {
    const encoding = chooseEncoding(acceptEncoding);
    this.#made ??= withHash(this.#make()).catch((error) => {
      this.#made = undefined; // the next request tries again
      throw error;
    });
    const { text, hash, headers } = await this.#made;
    const etag = `"${hash}${encoding === undefined ? '' : `-${encoding.name}`}"`;
    const all = { ETag: etag, Vary: 'Accept-Encoding', ...headers };
    const known = parseEntityTags(ifNoneMatch);
    if (known !== undefined && matchesWeakly(known, etag))
      return { status: 304, headers: all, body: null, databaseMs: 0 };
    if (encoding === undefined) return { status: 200, headers: all, body: Buffer.from(text), databaseMs: 0 };
    const body = await compress(text, encoding);
    return { status: 200, headers: { ...all, 'Content-Encoding': encoding.name }, body, databaseMs: 0 };
  }
}

async function withHash(making: Promise<FixedText>): Promise<FixedText & { readonly hash: string }> {
  const made = await making;
  return { ...made, hash: createHash('sha256').update(made.text).digest('base64url').slice(0, 22) };
}

type FixedReply = Reply & { readonly body: Buffer | null };
