import type { Filter } from '../definition/resource.js';

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** An id as it is bound: null, which equals nothing, when it cannot be an id. */
export function idOrNull(type: Filter['type'], value: string): string | null {
  if (type === 'uuid') return uuid.test(value) ? value : null;
  return value.includes('\0') ? null : value; // PostgreSQL's text holds no NUL
}
