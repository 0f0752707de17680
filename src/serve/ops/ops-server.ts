import { createServer, type IncomingHttpHeaders, type IncomingMessage, type Server } from 'node:http';
import { isIP } from 'node:net';
import { Registry } from 'prom-client';
import type { Observe } from '../../base/events.js';
import { splitList } from '../../base/members.js';
import { readProject } from '../../base/paths.js';
import type { Settings } from '../../settings.js';
import type { FixedBody } from '../http/descriptions.js';
import { commonHeaders } from '../http/render.js';
import { countHeaders } from '../http/request-head.js';
import { makePagePolicy } from '../openapi/docs-page.js';
import type { Readiness, StatusReport } from './status.js';

export interface OpsDeps {
  /** False when only a restart can help. */
  readonly alive: () => boolean;
  readonly metrics: () => Promise<string>;
  readonly readiness: () => Readiness;
  readonly status: () => StatusReport;
  /** Null if DOCS puts the page elsewhere, or has none. */
  readonly docs: () => FixedBody | null;
}

export type OpsNames = Pick<Settings, 'opsHost' | 'opsAllowedHosts'>;

interface Answer {
  readonly status: number;
  readonly type: string;
  readonly body: string | Buffer | null;
  readonly headers?: Readonly<Record<string, string>>;
}

function answerJson(body: unknown, isGood = true): Answer {
  return { status: isGood ? 200 : 503, type: 'application/json', body: JSON.stringify(body) };
}

const pages: Readonly<Record<string, (deps: OpsDeps, headers: IncomingHttpHeaders) => Answer | Promise<Answer>>> = {
  '/': () => ({ ...answerText(302, 'See /status.'), headers: { Location: 'status' } }),
  '/livez': ({ alive }) => answerJson({ status: alive() ? 'alive' : 'no worker reports' }, alive()),
  '/readyz': ({ readiness }) => answerReady(readiness(), ({ status }) => status === 'ready'),
  /** Writes need the primary, and no replica. */
  '/readyz/writes': ({ readiness }) =>
    answerReady(
      readiness(),
      ({ reasons, primary }) => primary?.healthy === true && !reasons.some((why) => why !== 'no healthy replica'),
    ),
  '/metrics': async ({ metrics }) => ({ status: 200, type: Registry.PROMETHEUS_CONTENT_TYPE, body: await metrics() }),
  '/status': answerStatusPage,
  '/status.json': ({ status }) => answerJson(status()),
  '/troubleshooting': () => answerPage(readProject('config/status/troubleshooting.html'), false),
  '/docs': async ({ docs }, headers) => {
    const reply = await docs()?.reply(headers['accept-encoding'], headers['if-none-match']);
    const type = 'text/html; charset=utf-8';
    return reply ? { ...reply, type } : answerText(404, 'DOCS puts the page elsewhere, or has none.');
  },
};

const answerReady = (answer: Readiness, isReady: (answer: Readiness) => boolean): Answer =>
  answerJson(answer, isReady(answer));

/** Inlines style and script, for a Content-Security-Policy by their hashes. */
function answerStatusPage(): Answer {
  const file = (name: string): string => readProject(`config/status/${name}`);
  const html = file('page.html').replace(/<(style|script) src="([\w.]+)">/g, (_, tag, name) => `<${tag}>${file(name)}`);
  return answerPage(html, true);
}

function answerPage(body: string, connects: boolean): Answer {
  const policy = `${makePagePolicy(body, connects)}; frame-ancestors 'none'`;
  return { status: 200, type: 'text/html; charset=utf-8', body, headers: { 'Content-Security-Policy': policy } };
}

/** Makes a server without tokens, so it belongs on a private address. */
export function makeOpsServer(deps: OpsDeps, { opsHost, opsAllowedHosts }: OpsNames, observe: Observe): Server {
  const names = new Set(['localhost', opsHost, ...splitList(opsAllowedHosts)].map((name) => name.toLowerCase()));
  const answer = async (request: IncomingMessage): Promise<Answer> => {
    if (!isAllowedHost(request, names))
      return answerText(421, 'Use an IP address, localhost, or a name that OPS_ALLOWED_HOSTS lists.');
    const page = pages[getPath(request)];
    if (page === undefined) return answerText(404, 'Not found');
    if (request.method !== 'GET' && request.method !== 'HEAD')
      return { ...answerText(405, 'Method not allowed'), headers: { Allow: 'GET, HEAD' } };
    return page(deps, request.headers);
  };
  return createServer(async (request, response) => {
    const { status, type, body, headers } = await answer(request).catch((error: Error) => {
      observe({ type: 'ops_failed', path: getPath(request), error });
      return answerText(500, 'Internal error');
    });
    response.writeHead(status, { ...commonHeaders, 'Content-Type': type, ...headers });
    response.end(request.method === 'HEAD' ? undefined : body);
  });
}

const getPath = ({ url = '' }: IncomingMessage): string => url.replace(/\?.*/s, '');

function answerText(status: number, sentence: string): Answer {
  return { status, type: 'text/plain', body: `${sentence}\n` };
}

/** Prevents DNS rebinding, where a hostile page sends its name as Host. An IP address cannot be rebound; HTTP/1.0 is no browser. */
function isAllowedHost(request: IncomingMessage, names: ReadonlySet<string>): boolean {
  const { host } = request.headers;
  if (host === undefined) return request.httpVersion === '1.0';
  const [, literal, name] = /^(?:\[([^\]]+)\]|([^:]+))(?::\d+)?$/.exec(host) ?? [];
  const isKnown = isIP(literal ?? name ?? '') > 0 || (name !== undefined && names.has(name.toLowerCase()));
  return isKnown && countHeaders(request, 'host') === 1;
}
