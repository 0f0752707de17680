import { hash } from 'node:crypto';
import type { Resource } from '../../resource/definition/resource.js';
import { matchesWeakly, parseEntityTags } from '../entity-tags.js';
import { makeDocsPage } from '../openapi/docs-page.js';
import { makeOpenApi } from '../openapi/openapi.js';
import { makeApiIndex, type OpenApiOptions } from '../openapi/values.js';
import type { Reply } from '../reply.js';
import { chooseEncoding, compress } from './content-encodings.js';

export type Descriptions = ReturnType<typeof makeDescriptions>;

/** Makes each document at its first request, so that no start waits for it. */
export function makeDescriptions(resources: readonly Resource[], options: OpenApiOptions) {
  const document = () => makeOpenApi(resources, options);
  return {
    index: new FixedBody(async () => ({ text: JSON.stringify(makeApiIndex(resources, options)) })),
    openapi: new FixedBody(async () => ({ text: JSON.stringify(document()) })),
    /** `isServedByApi` means that the page is below the address of the API. */
    docs: (isServedByApi: boolean) =>
      new FixedBody(async () => {
        const { html, policy } = makeDocsPage(document(), isServedByApi);
        const headers = {
          'Content-Type': 'text/html; charset=utf-8',
          'Content-Security-Policy': `${policy}; frame-ancestors 'none'`,
          'Cache-Control': 'no-cache', // browsers keep the page and revalidate it by its ETag
        };
        return { text: html, headers };
      }),
  };
}

type FixedReply = Reply & { readonly body: Buffer | null };
type FixedText = { readonly text: string; readonly headers?: Reply['headers'] };

/** Makes a text at its first use, and compresses it once for each content coding, which has an ETag of its own (RFC 9110 §8.8.3.3). */
export class FixedBody {
  #body: ReturnType<typeof addHash> | undefined;
  readonly #compressed = new Map<string, Buffer>();

  constructor(private readonly make: () => Promise<FixedText>) {}

  /** Answers 304 if If-None-Match names the representation that Accept-Encoding prefers, otherwise 200. */
  async reply(acceptEncoding: string | undefined, ifNoneMatch = ''): Promise<FixedReply> {
    const encoding = chooseEncoding(acceptEncoding);
    this.#body ??= addHash(this.make()).catch((error) => {
      this.#body = undefined; // the next request tries again
      throw error;
    });
    const { text, hash, headers } = await this.#body;
    const etag = `"${hash}${encoding === undefined ? '' : `-${encoding.name}`}"`;
    const all = { ETag: etag, Vary: 'Accept-Encoding', ...headers };
    const reply = { status: 200, headers: all, databaseMs: 0 };
    if (matchesWeakly(parseEntityTags(ifNoneMatch) ?? [], etag)) return { ...reply, status: 304, body: null };
    if (encoding === undefined) return { ...reply, body: Buffer.from(text) };
    const coded = { ...all, 'Content-Encoding': encoding.name };
    const compressed = this.#compressed.get(encoding.name) ?? (await compress(text, encoding));
    this.#compressed.set(encoding.name, compressed);
    return { ...reply, headers: coded, body: compressed };
  }
}

async function addHash(making: Promise<FixedText>): Promise<FixedText & { readonly hash: string }> {
  const made = await making;
  return { ...made, hash: hash('sha256', made.text, 'base64url').slice(0, 22) };
}
