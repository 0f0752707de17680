import { randomUUID } from 'node:crypto';
import { tokenPrefix } from './token-format.js';

/** An inbound X-Request-Id that can be logged and sent back as it is: kept. */
const valid = /^[A-Za-z0-9._:+/=-]{1,128}$/;

/** The client's request id when it is valid, else a new one. A token is none: request ids are logged. */
export function requestId(inbound: string | string[] | undefined): string {
  const isKept = typeof inbound === 'string' && valid.test(inbound) && !inbound.includes(tokenPrefix);
  return isKept ? inbound : randomUUID();
}
