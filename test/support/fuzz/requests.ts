import fc from 'fast-check';
import type { Harvest } from './harvest.js';
import { oddBodies } from './odd-bodies.js';
import { oddAuthorizations, oddHeaders } from './odd-headers.js';
import { forgedFor, forgedKeys, oddParameters, oddTargets } from './odd-targets.js';
import { type FuzzRequest, grantOf, type HeaderField } from './request.js';
import { rightRequests } from './right.js';
import type { World } from './world.js';

/** Makes another request of a request. */
type Twist = (request: FuzzRequest) => FuzzRequest;

/**
 * Requests of every kind: most are right, so that all there is behind the checks is reached; many are right but for a
 * twist or two; a few are odd throughout.
 */
export function requests(world: World, harvest: Harvest): fc.Arbitrary<FuzzRequest> {
  const right = rightRequests(world, harvest);
  const twist = twists(world, harvest);
  const twisted = (minLength: number, maxLength: number): fc.Arbitrary<FuzzRequest> =>
    fc
      .tuple(right, fc.array(twist, { minLength, maxLength }))
      .map(([request, list]) => list.reduce((changed, change) => change(changed), request));
  return fc.oneof(
    { weight: 60, arbitrary: right },
    { weight: 35, arbitrary: twisted(1, 2) },
    { weight: 5, arbitrary: twisted(3, 6) },
  );
}

function twists(world: World, harvest: Harvest): fc.Arbitrary<Twist> {
  return fc.oneof<fc.WeightedArbitrary<Twist>[]>(
    { weight: 6, arbitrary: oddHeaders(world).map(withHeaders) },
    { weight: 3, arbitrary: oddHeaders(world).map(insteadOf) },
    { weight: 4, arbitrary: oddAuthorizations(world).map(withAuthorization) },
    { weight: 6, arbitrary: oddParameters(world, harvest).map(withParameters) },
    {
      weight: 3,
      arbitrary: oddTargets(world).map(
        (target): Twist =>
          (request) => ({ ...request, target }),
      ),
    },
    {
      weight: 3,
      arbitrary: fc.constantFrom(...methods).map(
        (method): Twist =>
          (request) => ({ ...request, method }),
      ),
    },
    {
      weight: 5,
      arbitrary: oddBodies(world).map(
        (body): Twist =>
          (request) => ({ ...request, body }),
      ),
    },
    { weight: 2, arbitrary: fc.constantFrom('Idempotency-Key', 'If-Match', 'Content-Type', 'Host').map(without) },
    { weight: 3, arbitrary: forgedKeys.map((key) => withForgedCursor(world, key)) },
    { weight: 1, arbitrary: fc.constant(twice) },
  );
}

const methods = [
  ...['GET', 'HEAD', 'OPTIONS', 'POST', 'PATCH', 'PUT', 'DELETE', 'TRACE', 'CONNECT', 'PROPFIND', 'PURGE', 'M-SEARCH'],
  ...['QUERY', 'FOO', 'get', 'Get', 'G', 'POST-', '__proto__', "A!#$%&'*+.^_`|~9"],
];

const withHeaders =
  (fields: readonly HeaderField[]): Twist =>
  (request) => ({ ...request, headers: [...request.headers, ...fields] });

/** The fields replace those of the same name. */
const insteadOf =
  (fields: readonly HeaderField[]): Twist =>
  (request) => {
    const names = new Set(fields.map(([name]) => name.toLowerCase()));
    return { ...request, headers: [...request.headers.filter(([name]) => !names.has(name.toLowerCase())), ...fields] };
  };

const without =
  (field: string): Twist =>
  (request) => ({ ...request, headers: request.headers.filter(([name]) => name !== field) });

const withAuthorization =
  (fields: readonly HeaderField[]): Twist =>
  (request) =>
    withHeaders(fields)(without('Authorization')(request));

const withParameters =
  (parameters: string): Twist =>
  (request) => {
    const joiner = request.target.includes('?') ? '&' : '?';
    return { ...request, target: request.target + joiner + parameters };
  };

/** The last header field or the query once more. */
const twice: Twist = (request) => ({ ...request, headers: [...request.headers, ...request.headers.slice(-1)] });

const withForgedCursor =
  (world: World, key: readonly [string, string]): Twist =>
  (request) => {
    const id = grantOf(world, request)?.workspace.id ?? '';
    const target = request.target.replace(/(?<=[?&])(?:page|cursor)=[^&]*&?/g, '').replace(/[?&]$/, '');
    return { ...request, target: `${target}${target.includes('?') ? '&' : '?'}cursor=${forgedFor(target, id, key)}` };
  };
