import type { OpenApiDocument } from '../../../src/serve/openapi/document.js';
import { ContractViolation, contractValidator } from '../contract.js';
import { decompressed } from '../decompressed.js';
import { type CanaryKind, canariesIn } from './canaries.js';
import { pictureMarks } from './pictures.js';
import { type FuzzRequest, grantOf, valuesOf } from './request.js';
import type { WireResponse } from './wire.js';
import type { World } from './world.js';

export type Judge = (request: FuzzRequest, response: WireResponse, text: string) => string[];

/** Only the inside can produce these texts: SQL, its errors, names of tables and roles, stack traces, addresses, ciphertext. */
const insides =
  /\b(?:app|gateway)\.[a-z_]{3,}|\bgateway_(?:reader|writer|owner)\b|\bpg_(?!sleep)[a-z]+|\bselect\b[^"]{0,200}\bfrom\b|\binsert into\b|\bupdate \w+ set\b|\bworkspace_id =|relation \\?"|column \\?"|syntax error at|violates|invalid input syntax|SQLSTATE|postgres(?:ql)?:\/\/|\bat async\b|\\n {4}at |node:internal|node_modules|\/dist\/|\.js:\d|TypeError|RangeError|ECONN|ENOENT|EPIPE|\benc:v\d/i;
export const tokenMark = /wdg_[0-9A-Za-z]{8}/;

const visible: Readonly<Record<CanaryKind, (endpoint: string, may: (scope: string) => boolean) => boolean>> = {
  customer: (endpoint, may) => endpoint === 'klanten' && may('read:klanten'),
  installation: (endpoint, may) =>
    (endpoint === 'installaties' && (may('read:installaties') || may('write:installaties'))) ||
    (endpoint === 'logboeken' && may('read:logboeken')), // the diffs of what was written through the API
  readonly: (endpoint, may) => endpoint === 'installaties' && may('read:installaties'),
  workorder: (endpoint, may) => endpoint === 'werkbonnen' && may('read:werkbonnen'),
  log: (endpoint, may) => endpoint === 'logboeken' && may('read:logboeken'),
  never: () => false,
};

export function judge(world: World, document: OpenApiDocument): Judge {
  const validate = contractValidator(document);
  const description = JSON.stringify(document);
  const rules: readonly Judge[] = [
    ({ headers }, { status }) => {
      const codings = valuesOf(headers, 'transfer-encoding');
      const isExcused = status === 501 && codings.length > 0 && codings.join().toLowerCase() !== 'chunked';
      return (status >= 500 || status < 200) && !isExcused ? [`status ${status}`] : [];
    },
    ({ method }, { status, excess }) => {
      // Of a header that is too large or too late, the method is not known; the connection ends there.
      const isExcused = method === 'HEAD' && (status === 431 || status === 408);
      return excess > 0 && !isExcused ? [`${excess} bytes behind the response`] : [];
    },
    (request, { status, headers }, body) => {
      try {
        validate({ method: request.method, path: pathOf(request.target), status, headers, body });
        return [];
      } catch (error) {
        if (error instanceof ContractViolation) return [error.message];
        throw error;
      }
    },
    (request, { status }) => letIn(world, request, status),
    (request, { status, head }, body) => canaryFaults(world, request, status, head + body),
    (request, _, body) =>
      request.method === 'PATCH' || request.method === 'POST' ? revealed(world, request, body) : [],
    (_, { head }, body) => {
      const text = (body === description ? head : head + body).replace(/cursor(?:=|":")[\w-]+/gi, ''); // may read as anything
      const own = text.replace(/X-Request-Id: .*|"requestId":"[^"]*"/gi, ''); // the client may have chosen it
      const marks = [tokenMark.exec(text), pictureMarks.exec(own), insides.exec(own)].flatMap(
        (match) => match?.[0] ?? [],
      );
      return [...marks, ...world.secrets.filter((secret) => text.includes(secret))].map((mark) => `holds ${mark}`);
    },
  ];
  return (request, response, text) => rules.flatMap((rule) => rule(request, response, text));
}

export function textOf({ headers, body }: WireResponse): string {
  return decompressed(body, headers['content-encoding']).toString();
}

function pathOf(target: string): string {
  return target.replace(/^https?:\/\/[^/?#]*/i, '');
}

function endpointOf({ target }: FuzzRequest): string {
  return /^\/api\/v1\/(\w+)/.exec(pathOf(target))?.[1] ?? '';
}

function letIn(world: World, request: FuzzRequest, status: number): string[] {
  const isPublic = /^\/(?:api\/v1(?:\/(?:openapi\.json)?)?)?(?:$|\?)/.test(pathOf(request.target));
  if (status >= 400 || request.method === 'OPTIONS' || isPublic) return [];
  const scopes = grantOf(world, request)?.scopes ?? null;
  if (scopes === null) return [`${status} without a valid token`];
  const action = request.method === 'GET' || request.method === 'HEAD' ? 'read' : 'write';
  const scope = `${action}:${endpointOf(request)}`;
  return scopes.has(scope) ? [] : [`${status} without the scope ${scope}`];
}

function canaryFaults(world: World, request: FuzzRequest, status: number, text: string): string[] {
  const found = canariesIn(text);
  if (found.length === 0) return [];
  const grant = status < 400 ? grantOf(world, request) : null;
  const may = (scope: string): boolean => grant?.scopes?.has(scope) ?? false;
  const endpoint = endpointOf(request);
  return found
    .filter(
      ({ workspace, kind }) =>
        workspace !== grant?.workspace.number || kind === 'encoded' || !visible[kind]?.(endpoint, may),
    )
    .map(({ workspace, kind }) => `shows a canary ${kind} of workspace ${workspace}`);
}

function revealed(world: World, request: FuzzRequest, body: string): string[] {
  if (grantOf(world, request)?.scopes?.has('read:installaties')) return [];
  return body.startsWith('{"id"') &&
    /"(?:koudemiddel|koudemiddelGwp|vullingKg|interneNotities|lmraVerplicht)":/.test(body)
    ? ['shows read-only fields to a token without the read scope']
    : [];
}
