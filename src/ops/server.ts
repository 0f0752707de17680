import { createServer, type Server } from 'node:http';
import type { Registry } from 'prom-client';
import type { Replica } from '../db/replica.js';

/** What the ops listener shows. */
export interface OpsDeps {
  readonly registry: Registry;
  readonly replicas: readonly Replica[];
  readonly stopping: () => boolean;
  readonly docsHtml: string;
}

type Page = (deps: OpsDeps) => Promise<{ status: number; type: string; body: string }>;

const pages: Readonly<Record<string, Page>> = {
  '/livez': async () => ({ status: 200, type: 'application/json', body: '{"status":"alive"}' }),
  '/readyz': async (deps) => {
    const { ready, body } = readiness(deps);
    return { status: ready ? 200 : 503, type: 'application/json', body: JSON.stringify(body) };
  },
  '/metrics': async ({ registry }) => ({ status: 200, type: registry.contentType, body: await registry.metrics() }),
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

/** Ready while reads can be answered: one healthy replica is enough. */
function readiness({ replicas, stopping }: OpsDeps): { ready: boolean; body: object } {
  const healthy = replicas.some(({ state }) => state.healthy);
  const reasons = [...(stopping() ? ['stopping'] : []), ...(healthy ? [] : ['no healthy replica'])];
  const states = replicas.map(({ name, state }) => ({
    name,
    healthy: state.healthy,
    ...(state.reason !== null && { reason: state.reason }),
    lagMs: Number.isFinite(state.lagMs) ? state.lagMs : null,
  }));
  return {
    ready: reasons.length === 0,
    body: { status: reasons.length === 0 ? 'ready' : 'not ready', reasons, replicas: states },
  };
}
