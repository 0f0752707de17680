import { FixedBody } from './fixed-body.js';

/** Markup and the policy that allows its own style and script. */
export interface Markup {
  readonly html: string;
  readonly policy: string;
}

/**
 * A page of HTML that stays the same while the gateway runs, with a policy of its own; made at its first request. Browsers keep it
 * and ask by its ETag.
 */
export class HtmlPage {
  readonly #make: () => Promise<Markup>;
  readonly #body: FixedBody;
  #markup: Promise<Markup> | undefined;

  constructor(make: () => Promise<Markup>) {
    this.#make = make;
    this.#body = new FixedBody(async () => (await this.#load()).html);
  }

  /** Replies as FixedBody does. */
  async reply(...headers: Parameters<FixedBody['reply']>): ReturnType<FixedBody['reply']> {
    const [reply, { policy }] = await Promise.all([this.#body.reply(...headers), this.#load()]);
    const own = {
      'Content-Type': 'text/html; charset=utf-8',
      'Content-Security-Policy': `${policy}; frame-ancestors 'none'`,
      'Cache-Control': 'no-cache',
    };
    return { ...reply, headers: { ...reply.headers, ...own } };
  }

  #load(): Promise<Markup> {
    const markup = this.#markup ?? this.#make();
    this.#markup = markup;
    markup.catch(() => {
      this.#markup = undefined; // the next request tries again
    });
    return markup;
  }
}
