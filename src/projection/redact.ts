import { holdsImage } from './images.js';
import { elementsOf, MalformedJson, membersOf, namesIn, stringAt } from './json-scan.js';
import { isPersonalField, isPersonalMember } from './personal-names.js';
import { isSignatureName, stripImages } from './strip.js';

/**
 * The `wijzigingen` of a log entry as the API shows them: JSON text of [{"veld","oud","nieuw"}], members in that order,
 * made from the stored jsonb text of the same shape. A change that reading the log does not entitle to see becomes
 * {"veld", "afgeschermd": true}: customer personal data, signatures, anything encrypted.
 *
 * Members other than these three are dropped, a missing `oud` or `nieuw` is null, what is not a change is left out, and
 * text that is not an array is []. Values are copied as they stand, so numbers keep every digit. Never throws.
 */
export function redactDiff(entity: string, wijzigingen: string): string {
  if (wijzigingen === '[]') return wijzigingen;
  try {
    const harmless = !mayHide(wijzigingen);
    let changes = '';
    for (const element of elementsOf(wijzigingen)) {
      const change = shownChange(entity, element, harmless);
      if (change !== undefined) changes += changes === '' ? change : `,${change}`;
    }
    return `[${changes}]`;
  } catch (error) {
    if (error instanceof MalformedJson) return '[]';
    throw error;
  }
}

/** The change as the API shows it, or undefined when the element is not a change. Throws MalformedJson. */
function shownChange(entity: string, element: string, harmless: boolean): string | undefined {
  if (!element.startsWith('{')) return undefined;
  let field: string | undefined;
  let before = 'null';
  let after = 'null';
  for (const [name, value] of membersOf(element)) {
    if (name === 'veld') field = value;
    else if (name === 'oud') before = value;
    else if (name === 'nieuw') after = value;
  }
  if (field === undefined || !field.startsWith('"')) return undefined;
  const name = stringAt(field, 0, field.length);
  if (!isFieldName(name, harmless)) return undefined;

  if (isSignatureName(name) || isPersonalField(entity, name)) return shielded(field);
  const shownBefore = shownValue(before, harmless);
  const shownAfter = shownValue(after, harmless);
  if (shownBefore === undefined || shownAfter === undefined) return shielded(field);
  return `{"veld":${field},"oud":${shownBefore},"nieuw":${shownAfter}}`;
}

const encrypted = /enc:v/i;

/** Whether anything encrypted or any image may be in the text: one test of the whole spares each value its own. */
function mayHide(json: string): boolean {
  return json.includes('\\u') || encrypted.test(json) || stripImages(json) !== json;
}

function shielded(field: string): string {
  return `{"veld":${field},"afgeschermd":true}`;
}

const fieldNameLengthMax = 200;

/** The field name is always shown; a value in its place is not to be. */
function isFieldName(name: string, harmless: boolean): boolean {
  return name.length <= fieldNameLengthMax && (harmless || !(encrypted.test(name) || holdsImage(name)));
}

/** The value without images, or undefined when it is not to be shown at all. Throws MalformedJson. */
function shownValue(value: string, harmless: boolean): string | undefined {
  const isContainer = value.startsWith('{') || value.startsWith('[');
  if (isContainer && namesIn(value).some(isPersonalMember)) return undefined;
  if (harmless || value === 'null') return value;
  if (encrypted.test(unescaped(value))) return undefined;
  const stripped = stripImages(value);
  // A value that is an image as a whole is a signature by another name.
  return stripped === 'null' ? undefined : stripped;
}

/** JSON text with the escapes that could hide a word resolved. Not JSON any more. */
function unescaped(json: string): string {
  if (!json.includes('\\u')) return json;
  return json.replace(/\\u([0-9A-Fa-f]{4})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)));
}
