import type { Resource } from '../definition/resource.js';
import type { OpenApiOptions } from '../openapi/values.js';
import { FixedBody } from './fixed-body.js';
import { HtmlPage } from './html-page.js';

/** The descriptions of the API. Each is made, and its code loaded, at its first request: no start waits for it. */
export interface Descriptions {
  readonly index: FixedBody;
  readonly openapi: FixedBody;
  /** The documentation page; `servedByApi`: it is below the address of the API. */
  readonly docs: (servedByApi: boolean) => HtmlPage;
}

export function descriptions(resources: readonly Resource[], options: OpenApiOptions): Descriptions {
  const openapi = async () => (await import('../openapi/openapi.js')).openapi(resources, options);
  return {
    index: new FixedBody(async () =>
      JSON.stringify((await import('../openapi/values.js')).apiIndex(resources, options)),
    ),
    openapi: new FixedBody(async () => JSON.stringify(await openapi())),
    docs: (servedByApi) =>
      new HtmlPage(async () => {
        const { docsPage } = await import('../openapi/page.js');
        const { pagePolicy } = await import('../openapi/html.js');
        const html = docsPage(await openapi(), servedByApi);
        return { html, policy: pagePolicy(html) };
      }),
  };
}
