import { skipSpace, stringAt, stringEnd } from './json-scan.js';
import { plainText } from './plain-text.js';

/** The names of members that name what stands beside them. */
export const namingNames = 'name|naam|label|type|key|title|titel|field|veld|kind|soort|vraag|question|code|id';
const naming = new RegExp(`^\\s*(?:${namingNames})\\s*$`, 'i');

/** Values beside a member such as "naam" that says signature; true, false and null stay. Throws MalformedJson. */
export function namedSignatures(json: string, isSignatureName: (name: string) => boolean): number[] {
  const found: number[] = [];
  const open = [{ values: [] as number[], isSignature: false }]; // the objects and lists around a position
  for (let at = 0; at < json.length; at++) {
    const char = json[at] as string;
    if (char === '{' || char === '[') open.push({ values: [], isSignature: false });
    else if (char === '}' || char === ']') {
      const { values = [], isSignature = false } = open.pop() ?? {};
      if (isSignature) for (const value of values) found.push(value);
    } else if (char === '"') {
      const end = stringEnd(json, at);
      const colon = skipSpace(json, end);
      const value = skipSpace(json, colon + 1);
      const object = open.at(-1);
      if (json[colon] === ':' && object !== undefined) {
        const isNaming = json[value] === '"' && naming.test(plainText(stringAt(json, at, end)));
        if (isNaming) object.isSignature ||= isSignatureName(stringAt(json, value, stringEnd(json, value)));
        else if (!/[tfn]/.test(json.charAt(value))) object.values.push(value);
      }
      at = end - 1;
    }
  }
  return found;
}
