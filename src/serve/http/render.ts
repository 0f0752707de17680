import { getProblemType, type Problem, problems } from '../../base/errors.js';

export const apiVersion = '1.0.0';

/** Headers of every response, also to requests that are not HTTP. */
export const commonHeaders: Readonly<Record<string, string>> = {
  'API-Version': apiVersion,
  'Cache-Control': 'no-store',
  'X-Content-Type-Options': 'nosniff',
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
  'Referrer-Policy': 'no-referrer',
};

/** Renders every error response (RFC 9457). */
export function renderProblem(problem: Problem, requestId: string) {
  const { status, title } = problems[problem.code];
  const body = JSON.stringify({
    type: getProblemType(problem.code),
    title,
    status,
    detail: problem.message,
    code: problem.code,
    requestId,
    ...(problem.fieldErrors.length > 0 && { errors: problem.fieldErrors }),
  });
  return { status, headers: { 'Content-Type': 'application/problem+json', ...problem.headers }, body };
}

/** Adds all headers, for requests that never reach the app. */
export function renderWhole(problem: Problem, requestId: string) {
  const { status, headers, body } = renderProblem(problem, requestId);
  const own = { 'X-Request-Id': requestId, 'Content-Length': String(Buffer.byteLength(body)) };
  return { status, headers: { ...commonHeaders, ...headers, ...own }, body };
}
