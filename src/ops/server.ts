import { createServer, type Server } from 'node:http';
import { Registry } from 'prom-client';
import type { Readiness } from './readiness.js';

/** What the ops listener shows: of one gateway, or of all workers of a parent. */
export interface OpsDeps {
  readonly metrics: () => Promise<string>;
  readonly readiness: () => Readiness;
  readonly docsHtml: string;
}

type Page = (deps: OpsDeps) => Promise<{ status: number; type: string; body: string }>;

const pages: Readonly<Record<string, Page>> = {
  '/livez': async () => ({ status: 200, type: 'application/json', body: '{"status":"alive"}' }),
  '/readyz': async ({ readiness }) => {
    const answer = readiness();
    return { status: answer.status === 'ready' ? 200 : 503, type: 'application/json', body: JSON.stringify(answer) };
  },
  '/metrics': async ({ metrics }) => ({ status: 200, type: Registry.PROMETHEUS_CONTENT_TYPE, body: await metrics() }),
  '/docs': async ({ docsHtml }) => ({ status: 200, type: 'text/html; charset=utf-8', body: docsHtml }),
};

/** The ops listener: for the operator, on a private address; it asks for no token. */
export function opsServer(deps: OpsDeps): Server {
  return createServer((request, response) => {
    const page = pages[(request.url as string).split('?')[0] as string];
    const answer = page ? page(deps) : Promise.resolve({ status: 404, type: 'text/plain', body: 'Not found\n' });
    answer.then(
      ({ status, type, body }) => {
        response.writeHead(status, {
          'Content-Type': type,
          'Cache-Control': 'no-store',
          'X-Content-Type-Options': 'nosniff',
        });
        response.end(request.method === 'HEAD' ? undefined : body);
      },
      () => response.writeHead(500).end(),
    );
  });
}
