import fc from 'fast-check';
import type { Harvest } from './harvest.js';
import * as odd from './odd.js';
import { type FuzzRequest, grantOf, type HeaderField, weighted } from './request.js';
import { rightRequests } from './right.js';
import type { World } from './world.js';

type Twist = (request: FuzzRequest) => FuzzRequest;

/** Most are right, to reach what is behind the checks; many have a twist or two; a few are odd throughout. */
export function requests(world: World, harvest: Harvest): fc.Arbitrary<FuzzRequest> {
  const right = rightRequests(world, harvest);
  const twist = twists(world, harvest);
  const twisted = (minLength: number, maxLength: number): fc.Arbitrary<FuzzRequest> =>
    fc
      .tuple(right, fc.array(twist, { minLength, maxLength }))
      .map(([request, list]) => list.reduce((changed, change) => change(changed), request));
  return weighted([60, right], [35, twisted(1, 2)], [5, twisted(3, 6)]);
}

function twists(world: World, harvest: Harvest): fc.Arbitrary<Twist> {
  const withPart =
    (part: Partial<FuzzRequest>): Twist =>
    (request) => ({ ...request, ...part });
  return weighted<Twist>(
    [6, odd.oddHeaders(world).map(withHeaders)],
    [3, odd.oddHeaders(world).map(insteadOf)],
    [
      4,
      odd.oddAuthorizations(world).map((fields) => (request) => withHeaders(fields)(without('Authorization')(request))),
    ],
    [6, odd.oddParameters(world, harvest).map(withParameters)],
    [3, odd.oddTargets(world).map((target) => withPart({ target }))],
    [3, fc.constantFrom(...methods).map((method) => withPart({ method }))],
    [5, odd.oddBodies(world).map((body) => withPart({ body }))],
    [2, fc.constantFrom('Idempotency-Key', 'If-Match', 'Content-Type', 'Host').map(without)],
    [3, odd.forgedKeys.map((key) => withForgedCursor(world, key))],
    [1, fc.constant<Twist>((request) => withHeaders(request.headers.slice(-1))(request))],
  );
}

const methods = [
  ...['GET', 'HEAD', 'OPTIONS', 'POST', 'PATCH', 'PUT', 'DELETE', 'TRACE', 'CONNECT', 'PROPFIND', 'PURGE', 'M-SEARCH'],
  ...['QUERY', 'FOO', 'get', 'Get', 'G', 'POST-', '__proto__', "A!#$%&'*+.^_`|~9"],
];

const withHeaders =
  (fields: readonly HeaderField[]): Twist =>
  (request) => ({ ...request, headers: [...request.headers, ...fields] });

const insteadOf =
  (fields: readonly HeaderField[]): Twist =>
  (request) =>
    withHeaders(fields)(fields.reduce((changed, [name]) => without(name)(changed), request));

const without =
  (field: string): Twist =>
  (request) => {
    const headers = request.headers.filter(([name]) => name.toLowerCase() !== field.toLowerCase());
    return { ...request, headers };
  };

const withParameters =
  (parameters: string): Twist =>
  (request) => {
    const joiner = request.target.includes('?') ? '&' : '?';
    return { ...request, target: request.target + joiner + parameters };
  };

const withForgedCursor =
  (world: World, key: readonly [string, string]): Twist =>
  (request) => {
    const id = grantOf(world, request)?.workspace.id ?? '';
    const target = request.target.replace(/(?<=[?&])(?:page|cursor)=[^&]*&?/g, '').replace(/[?&]$/, '');
    return withParameters(`cursor=${odd.forgedFor(target, id, key)}`)({ ...request, target });
  };
