import { timestampSchema } from '../definition/field-schema.js';
import { component, type Header, type Reference } from './document.js';

/** What an X-Request-Id looks like, in either direction. */
export const requestIdPattern = '^[A-Za-z0-9._:+/=-]{1,128}$';

const rateLimit: Header = {
  description: 'What is left of the quota: `r` requests, until `t` seconds from now.',
  schema: { type: 'string', pattern: '^"default";r=[0-9]+;t=[0-9]+$' },
  example: '"default";r=59;t=42',
};
const rateLimitPolicy: Header = {
  description: 'The quota of the token: `q` requests in any window of `w` seconds, over all endpoints.',
  schema: { type: 'string', pattern: '^"default";q=[0-9]+;w=[0-9]+$' },
  example: '"default";q=60;w=60',
};
const timing: Header = {
  description: 'How long the stages of the request took, in milliseconds.',
  schema: { type: 'string', pattern: '^[^;,]+' },
  example: 'auth;dur=0.1, db;dur=1.4',
};
const moment: Header = {
  description: 'The moment up to which the replica that answered is known to be current.',
  schema: timestampSchema,
  example: '2026-03-14T09:26:53.589Z',
};
const required = (header: Header): Header => ({ ...header, required: true });
const fixed = (value: string, description: string): Header =>
  required({ description, schema: { type: 'string', const: value }, example: value });
const constrained = (pattern: string, example: string, description: string): Header => ({
  description,
  schema: { type: 'string', pattern },
  example,
});

/** Every response header of the API, by component name; the key of `headerName` where that is another. */
export const headers: Readonly<Record<string, Header>> = {
  'X-Request-Id': required(
    constrained(
      requestIdPattern,
      '0b1d6f0e-7f5c-4b7e-9d5f-1f0c8f1f5d0a',
      'Names the request in logs and in problems; a valid one that came in is kept.',
    ),
  ),
  'API-Version': required(constrained('^1\\.[0-9]+\\.[0-9]+$', '1.0.0', 'Version of the API that answered.')),
  'Cache-Control': fixed('no-store', 'Nothing may be kept by caches.'),
  'X-Content-Type-Options': fixed('nosniff', 'The media type is meant as stated.'),
  'Content-Security-Policy': fixed("default-src 'none'; frame-ancestors 'none'", 'Nothing here is a page.'),
  'Referrer-Policy': fixed('no-referrer', 'Addresses are not passed on.'),
  Deprecation: constrained(
    '^@[0-9]+$',
    '@1767225600',
    'When this version became or becomes deprecated (RFC 9745); absent while it is not.',
  ),
  Sunset: constrained(
    'GMT$',
    'Fri, 01 Jan 2027 00:00:00 GMT',
    'When this version ends (RFC 8594), at least 12 months after notice; absent while no end is known.',
  ),
  Vary: {
    description: 'The request headers that the response depends on.',
    schema: { type: 'string', minLength: 1 },
    example: 'Accept-Encoding',
  },
  NegotiatedVary: required(
    constrained('Accept-Encoding', 'Accept-Encoding', 'The request headers that the response depends on.'),
  ),
  'Accept-Encoding': constrained('^identity$', 'identity', 'What a body may be coded as (RFC 9110 §12.5.3).'),
  'Accept-Patch': constrained(
    '^[^,]+(, [^,]+)*$',
    'application/json',
    'What the body of a PATCH may be (RFC 5789 §3.1).',
  ),
  'Content-Encoding': {
    description: 'How the body is compressed; absent when it is not.',
    schema: { type: 'string', enum: ['gzip', 'br'] },
    example: 'gzip',
  },
  RateLimit: required(rateLimit),
  'RateLimit-Policy': required(rateLimitPolicy),
  RateLimitWhenAuthenticated: {
    ...rateLimit,
    description: `${rateLimit.description} Absent when no token was recognised.`,
  },
  RateLimitPolicyWhenAuthenticated: {
    ...rateLimitPolicy,
    description: `${rateLimitPolicy.description} Absent when no token was recognised.`,
  },
  'Server-Timing': required(timing),
  WriteTiming: timing,
  'Data-As-Of': required(moment),
  ReadMoment: moment,
  Link: required(
    constrained(
      '^<[^>]+>; rel="(first|next)"(, <[^>]+>; rel="(first|next)")*$',
      '<https://example.com/api/v1/klanten?cursor=eyJ2IjoxfQ>; rel="next", <https://example.com/api/v1/klanten>; rel="first"',
      'Absolute addresses of the first page and, unless this is the last one, of the next page (RFC 8288), with all filters kept.',
    ),
  ),
  ETag: required(
    constrained(
      '^"[!#-~]+"$',
      '"v3"',
      'Strong validator of the record, derived from its version; the same from reads and writes.',
    ),
  ),
  Location: required({
    description: 'Address of the new record.',
    schema: { type: 'string', format: 'uri-reference' },
    example: '/api/v1/installaties/5f0d7c1e-8a43-4c52-9b1d-3f6e2a9c7d10',
  }),
  'Idempotent-Replayed': {
    description: 'Present when the response is the stored one of an earlier request with the same Idempotency-Key.',
    schema: { type: 'string', const: 'true' },
    example: 'true',
  },
  'Retry-After': required({
    description: 'Seconds to wait before trying again; waiting that long is enough.',
    schema: { type: 'integer', minimum: 0 },
    example: 1,
  }),
  'WWW-Authenticate': required(
    constrained(
      '^Bearer realm="workspace-data-api"',
      'Bearer realm="workspace-data-api", error="invalid_token"',
      'How to authenticate (RFC 6750).',
    ),
  ),
  Allow: required(constrained('^[A-Z]+(, [A-Z]+)*$', 'GET, HEAD, OPTIONS', 'The methods of the path.')),
};

const headerName: Readonly<Record<string, string>> = {
  NegotiatedVary: 'Vary',
  WriteTiming: 'Server-Timing',
  ReadMoment: 'Data-As-Of',
  RateLimitWhenAuthenticated: 'RateLimit',
  RateLimitPolicyWhenAuthenticated: 'RateLimit-Policy',
};

const everywhere = [
  'X-Request-Id',
  'API-Version',
  'Cache-Control',
  'X-Content-Type-Options',
  'Content-Security-Policy',
  'Referrer-Policy',
  'Deprecation',
  'Sunset',
  'Vary',
];

/** Whether a response counts against a token: always, only if the token was recognised first, or never. */
export type RateLimited = 'always' | 'whenAuthenticated' | 'never';

const rateHeaders: Readonly<Record<RateLimited, readonly string[]>> = {
  always: ['RateLimit-Policy', 'RateLimit'],
  whenAuthenticated: ['RateLimitPolicyWhenAuthenticated', 'RateLimitWhenAuthenticated'],
  never: [],
};

/** The headers of a response: those every one has, those of the limit, and its own. Later ones replace earlier ones of their name. */
export function headersOf(rate: RateLimited, own: readonly string[] = []): Record<string, Reference> {
  return Object.fromEntries(
    [...everywhere, ...rateHeaders[rate], ...own].map((name) => [headerName[name] ?? name, component('headers', name)]),
  );
}
