import { type ProblemCode, problems } from '../errors.js';
import { type ApiResponse, component, type Responses } from './document.js';
import { expand, mapValues, readData, type Sets } from './template.js';

/** Codes of the table of problems, and names of headers or of sets of headers. */
type ErrorResponse = { readonly codes: readonly ProblemCode[]; readonly headers: readonly string[] };

/** The error responses as components, and the sets of references to them, by status. Both from config/openapi/errors.json. */
export function errorParts(headersOf: (names: readonly string[]) => ApiResponse['headers']): {
  readonly components: Record<string, ApiResponse>;
  readonly references: Record<string, Responses>;
} {
  const { responses, sets } = readData('errors.json') as { responses: Record<string, ErrorResponse>; sets: Sets };
  const statuses = mapValues(responses, statusOf);
  const reference = (name: string) => [statuses[name], component('responses', name)] as const;
  return {
    components: mapValues(responses, (response) => errorResponse(response, headersOf(response.headers))),
    references: mapValues(sets, (names) => Object.fromEntries(expand(names, sets).map(reference))),
  };
}

/** An error response; its texts come from the table of problems. */
function errorResponse({ codes }: ErrorResponse, headers: ApiResponse['headers']): ApiResponse {
  const rows = codes.map((code) => ({ code, type: problemType(code), ...problems[code] }));
  const properties = {
    type: { type: 'string', enum: rows.map(({ type }) => type) },
    title: { type: 'string', enum: rows.map(({ title }) => title) },
    status: { type: 'integer', enum: [...new Set(rows.map(({ status }) => status))] },
    detail: { type: 'string' },
    code: { type: 'string', enum: codes },
  };
  const [{ type, title, status, code }] = rows as [(typeof rows)[number]];
  const example = { type, title, status, detail: `${title}.`, code, requestId: '0b1d6f0e-7f5c-4b7e-9d5f-1f0c8f1f5d0a' };
  const schema = { type: 'object', allOf: [component('schemas', 'Problem')], properties };
  return {
    description: rows.map((row) => `\`${row.code}\`: ${row.title}.`).join(' '),
    headers,
    content: { 'application/problem+json': { schema, example } },
  };
}

/** The `type` of a problem (RFC 9457 §3.1.1). */
export function problemType(code: string): string {
  return `urn:workspace-data-api:problem:${code}`;
}

function statusOf({ codes }: ErrorResponse): number {
  const [status, ...others] = new Set(codes.map((code) => problems[code].status));
  if (status === undefined || others.length > 0) throw new Error(`${codes.join(', ')} do not have the same status.`);
  return status;
}
