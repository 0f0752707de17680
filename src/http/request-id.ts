import { randomUUID } from 'node:crypto';

/** An inbound X-Request-Id that can be logged and sent back as it is: kept. */
const valid = /^[A-Za-z0-9._:+/=-]{1,128}$/;

/** The client's request id when it is valid, else a new one. */
export function requestId(inbound: string | string[] | undefined): string {
  return typeof inbound === 'string' && valid.test(inbound) ? inbound : randomUUID();
}
