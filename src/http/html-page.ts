import { pagePolicy } from '../openapi/html.js';
import { FixedBody } from './fixed-body.js';

/** A page of HTML that stays the same while the gateway runs, with a policy of its own. Browsers keep it and ask by its ETag. */
export class HtmlPage {
  readonly #body: FixedBody;
  readonly #headers: Readonly<Record<string, string>>;

  constructor(html: string) {
    this.#body = new FixedBody(html);
    this.#headers = {
      'Content-Type': 'text/html; charset=utf-8',
      'Content-Security-Policy': `${pagePolicy(html)}; frame-ancestors 'none'`,
      'Cache-Control': 'no-cache',
    };
  }

  /** Replies as FixedBody does. */
  async reply(...headers: Parameters<FixedBody['reply']>): ReturnType<FixedBody['reply']> {
    const reply = await this.#body.reply(...headers);
    return { ...reply, headers: { ...reply.headers, ...this.#headers } };
  }
}
