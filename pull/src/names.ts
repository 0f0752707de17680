import { createHash } from 'node:crypto';

/** Bytes that PostgreSQL keeps of a name. */
const nameLengthMax = 63;

/** Turns `createdAt` into `created_at`. A name that is too long ends with a hash of all of it. */
export function toSnake(name: string): string {
  const snake = name
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replace(/[^A-Za-z0-9_]/g, '_')
    .toLowerCase();
  return shortenName(snake === '' ? '_' : snake);
}

/** Cuts a long name and ends it with a hash of all of it. */
export function shortenName(name: string): string {
  if (name.length <= nameLengthMax) return name;
  return `${name.slice(0, nameLengthMax - 9)}_${createHash('sha256').update(name).digest('hex').slice(0, 8)}`;
}

export const joinNames = (parts: readonly string[]): string => shortenName(parts.map(toSnake).join('_'));

/** Returns the name, with a number after it if it is taken. */
export function chooseFree(name: string, taken: Set<string>): string {
  let found = name;
  for (let i = 2; taken.has(found); i++) found = shortenName(`${name}_${i}`);
  taken.add(found);
  return found;
}
