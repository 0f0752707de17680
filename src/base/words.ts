import type words from '../../config/adopt/words.json';
import { readProject } from './paths.js';

/** Meaning of a name in English or Dutch, by which `adopt` guesses and `check` warns. */
export type Purpose = keyof typeof words;

const compiled = new Map<Purpose, RegExp>();

/** Tries the expressions of config/adopt/words.json, in snake case. */
export function isNamed(purpose: Purpose, name: string): boolean {
  if (compiled.size === 0) {
    const texts = JSON.parse(readProject('config/adopt/words.json')) as Readonly<Record<Purpose, readonly string[]>>;
    for (const [key, patterns] of Object.entries(texts)) compiled.set(key as Purpose, new RegExp(patterns.join('|')));
  }
  return (compiled.get(purpose) as RegExp).test(toSnakeCase(name));
}

/** Turns "createdAt" and "Created-At" into "created_at". */
export function toSnakeCase(name: string): string {
  const words = name
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replace(/([A-Z])([A-Z][a-z])/g, '$1_$2')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '_')
    .replace(/^_+|_+$/g, '');
  return /^[a-z]/.test(words) ? words.slice(0, 50) : `x_${words}`.slice(0, 50);
}
