import { elementsOf, membersOf } from '../projection/json-scan.js';
import type { Flaw } from './contradictions.js';

/** Keys that an object of the JSON text has twice: JSON.parse would silently take the last. */
export function repeatedKeys(json: string, at = ''): Flaw[] {
  const text = json.trim();
  if (text.startsWith('[')) return elementsOf(text).flatMap((element, i) => repeatedKeys(element, `${at}/${i}`));
  if (!text.startsWith('{')) return [];
  const seen = new Set<string>();
  return membersOf(text).flatMap(([name, value]) => {
    const inner = repeatedKeys(value, `${at}/${name}`);
    if (!seen.has(name)) {
      seen.add(name);
      return inner;
    }
    return [{ at: `${at}/${name}`, wrong: 'the key stands there twice', remedy: 'keep one of them' }, ...inner];
  });
}
