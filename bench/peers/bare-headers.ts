import { randomUUID } from 'node:crypto';
import { commonHeaders } from '../../src/http/render.js';

/** As many bytes of headers as the gateway sends, so that the difference is work, not bytes: names and values in turns. */
export function gatewayHeaders(): string[] {
  return Object.entries({
    ...commonHeaders,
    'X-Request-Id': randomUUID(),
    'RateLimit-Policy': '"default";q=60;w=60',
    RateLimit: '"default";r=59;t=60',
    'Data-As-Of': new Date().toISOString(),
    ETag: '"1"',
    'Server-Timing': 'auth;dur=0.05, db;dur=1.25',
    'Content-Type': 'application/json',
  }).flat();
}
