import { type Leaf, placeOf, type Resource } from '../definition/resource.js';
import { holdsImage } from '../projection/images.js';
import { isSignatureName } from '../projection/strip.js';
import { type Item, warning, withFile } from './finding.js';

/** With fewer values their form is chance. */
const valuesMin = 5;
const shareMin = 0.9;
const address = /[\w.+-]{1,64}@[\w-]+(\.[\w-]+)*\.[a-z]{2,}/i;
/** Words such as "enc:v2:k1:" before bytes in base64 or hex. */
const sealed = /^(?:[\w.-]{1,40}[:$|!])*(?=[\w+/-]*\d)(?=[\w+/-]*[A-Za-z])([\w+/-]{38,}={0,2})$/;
const digestLengths = [32, 40, 64, 96, 128];

/** The values of the members of a sample, as a list shows them. */
export class ClearValues {
  readonly #values = new Map<Leaf, unknown[]>();

  add(leaf: Leaf, value: unknown): void {
    if (value === null || value === undefined) return;
    const values = this.#values.get(leaf) ?? [];
    this.#values.set(leaf, values);
    values.push(value);
  }

  /** A warning of members that show personal data, images or sealed values as they are stored. No value is in it. */
  items(resource: Resource): Item[] {
    const reasons = [...this.#values].flatMap(([leaf, values]) => {
      const reason = reasonOf(leaf, values);
      return reason === undefined ? [] : [`${placeOf(leaf.path)}: ${reason}`];
    });
    return reasons.length === 0
      ? []
      : [warning('clear_values', `${withFile(reasons, resource).join('; ')}.`, resource.name)];
  }
}

function reasonOf({ field, path }: Leaf, values: readonly unknown[]): string | undefined {
  const texts = values.filter((value) => typeof value === 'string');
  if (field.clean !== 'audit-diff' && values.some(isDiff)) return 'changes of records, without "clean": "audit-diff"';
  const isCleaned = field.clean !== undefined;
  if (!isCleaned && values.some((value) => holdsImage(typeof value === 'string' ? value : JSON.stringify(value))))
    return 'images, without "clean"';
  if (!isCleaned && texts.length > 0 && isSignatureName(path.at(-1) as string)) return 'signatures, without "clean"';
  if (texts.length > 0 && texts.filter((text) => address.test(text)).length * 2 > texts.length)
    return 'e-mail addresses';
  if (texts.length >= valuesMin && texts.filter(isSealed).length >= texts.length * shareMin && !areDigests(texts))
    return 'values that look encrypted, without a codec';
  return undefined;
}

/** Whether the value, or an element of it, has the old and the new value of a field: as two members, or as a pair. */
function isDiff(value: unknown): boolean {
  if (Array.isArray(value)) return value.some(isDiff);
  if (typeof value !== 'object' || value === null) return false;
  const names = Object.keys(value);
  const isPair = (member: unknown): boolean => Array.isArray(member) && member.length === 2;
  return (
    (names.some((name) => /^(oud|old|before|previous)/i.test(name)) &&
      names.some((name) => /^(nieuw|new|after|current)/i.test(name))) ||
    (names.length > 0 && Object.values(value).every(isPair))
  );
}

/** Bytes without form, of a nonce and a tag at least. */
function isSealed(text: string): boolean {
  const [, payload] = sealed.exec(text) ?? [];
  if (payload === undefined) return false;
  const bytes = Buffer.from(payload, /^([0-9a-f]{2})+$/i.test(payload) ? 'hex' : 'base64');
  return bytes.length >= 28 && bytes.toString('utf8').includes('\ufffd');
}

function areDigests(texts: readonly string[]): boolean {
  const [length = 0] = new Set(texts.map((text) => text.length));
  return texts.every((text) => text.length === length && /^[0-9a-f]+$/i.test(text)) && digestLengths.includes(length);
}
