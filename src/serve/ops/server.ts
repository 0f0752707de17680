import { createServer, type IncomingHttpHeaders, type IncomingMessage, type Server } from 'node:http';
import { isIP } from 'node:net';
import { Registry } from 'prom-client';
import { projectText } from '../../base/paths.js';
import type { Settings } from '../../settings.js';
import type { FixedBody } from '../http/descriptions.js';
import { commonHeaders } from '../http/render.js';
import { headerCount } from '../http/request-head.js';
import { pagePolicy } from '../openapi/page.js';
import type { Readiness, StatusReport } from './status.js';

export interface OpsDeps {
  /** It is false when only a restart can help. */
  readonly alive: () => boolean;
  readonly metrics: () => Promise<string>;
  readonly readiness: () => Readiness;
  readonly status: () => StatusReport;
  /** It is null if DOCS puts the page elsewhere, or has none. */
  readonly docs: () => FixedBody | null;
}

export type OpsNames = Pick<Settings, 'opsHost' | 'opsAllowedHosts'>;

interface Answer {
  readonly status: number;
  readonly type: string;
  readonly body: string | Buffer | null;
  readonly headers?: Readonly<Record<string, string>>;
}

const json = (body: unknown): Answer => ({ status: 200, type: 'application/json', body: JSON.stringify(body) });

const pages: Readonly<Record<string, (deps: OpsDeps, headers: IncomingHttpHeaders) => Answer | Promise<Answer>>> = {
  '/': () => ({ ...text(302, 'See /status.'), headers: { Location: 'status' } }),
  '/livez': ({ alive }) => {
    const isAlive = alive();
    const body = JSON.stringify({ status: isAlive ? 'alive' : 'no worker reports' });
    return { status: isAlive ? 200 : 503, type: 'application/json', body };
  },
  '/readyz': ({ readiness }) => ready(readiness(), ({ status }) => status === 'ready'),
  /** Writes need the primary, and no replica. */
  '/readyz/writes': ({ readiness }) =>
    ready(
      readiness(),
      ({ reasons, primary }) => primary?.healthy === true && !reasons.some((why) => why !== 'no healthy replica'),
    ),
  '/metrics': async ({ metrics }) => ({ status: 200, type: Registry.PROMETHEUS_CONTENT_TYPE, body: await metrics() }),
  '/status': statusPage,
  '/status.json': ({ status }) => json(status()),
  '/troubleshooting': () => page(projectText('config/status/troubleshooting.html'), false),
  '/docs': async ({ docs }, headers) => {
    const reply = await docs()?.reply(headers['accept-encoding'], headers['if-none-match']);
    if (reply === undefined) return text(404, 'DOCS puts the page elsewhere, or has none.');
    return { ...reply, type: 'text/html; charset=utf-8' };
  },
};

const ready = (answer: Readiness, isReady: (answer: Readiness) => boolean): Answer => ({
  ...json(answer),
  status: isReady(answer) ? 200 : 503,
});

/** Style and script are inline, for a Content-Security-Policy by their hashes. */
function statusPage(): Answer {
  const file = (name: string): string => projectText(`config/status/${name}`);
  const html = file('page.html').replace(/<(style|script) src="([\w.]+)">/g, (_, tag, name) => `<${tag}>${file(name)}`);
  return page(html, true);
}

function page(body: string, connects: boolean): Answer {
  const policy = `${pagePolicy(body, connects)}; frame-ancestors 'none'`;
  return { status: 200, type: 'text/html; charset=utf-8', body, headers: { 'Content-Security-Policy': policy } };
}

/** It requires no token, so it belongs on a private address. */
export function opsServer(deps: OpsDeps, settings: OpsNames): Server {
  const { opsHost, opsAllowedHosts } = settings;
  const names = new Set(['localhost', opsHost, ...opsAllowedHosts.split(/[\s,]+/)].map((name) => name.toLowerCase()));
  const answer = async (request: IncomingMessage): Promise<Answer> => {
    if (!isAllowedHost(request, names))
      return text(421, 'Use an IP address, localhost, or a name that OPS_ALLOWED_HOSTS lists.');
    const page = pages[(request.url as string).split('?')[0] as string];
    if (page === undefined) return text(404, 'Not found');
    if (request.method !== 'GET' && request.method !== 'HEAD')
      return { ...text(405, 'Method not allowed'), headers: { Allow: 'GET, HEAD' } };
    return page(deps, request.headers);
  };
  return createServer(async (request, response) => {
    const { status, type, body, headers } = await answer(request).catch(() => text(500, 'Internal error'));
    response.writeHead(status, { ...commonHeaders, 'Content-Type': type, ...headers });
    response.end(request.method === 'HEAD' ? undefined : body);
  });
}

const text = (status: number, sentence: string): Answer => ({ status, type: 'text/plain', body: `${sentence}\n` });

/**
 * Prevents DNS rebinding, by which a hostile page sends its own name as Host. An IP address cannot be rebound; browsers do not use
 * HTTP/1.0, which needs no Host.
 */
function isAllowedHost(request: IncomingMessage, names: ReadonlySet<string>): boolean {
  const { host } = request.headers;
  if (host === undefined) return request.httpVersion === '1.0';
  const [, literal, name] = /^(?:\[([^\]]+)\]|([^:]+))(?::\d+)?$/.exec(host) ?? [];
  const isKnown = isIP(literal ?? name ?? '') > 0 || (name !== undefined && names.has(name.toLowerCase()));
  return isKnown && headerCount(request, 'host') === 1;
}
