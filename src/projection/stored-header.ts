import { type Codec, templatePieces } from './codec.js';
import type { DecodeReason } from './decode-error.js';

/** The beginning of a stored value, up to the encoded bytes. */
export interface StoredHeader {
  readonly text: string;
  /** Id of the key in it; null when it holds none. */
  readonly keyId: string | null;
  /** Whether it is the legacy prefix. */
  readonly isLegacy: boolean;
}

/** Makes the function that finds the header of a stored value, or the reason why there is none. */
export function headerReader(
  { prefix = '', legacyPrefix }: Pick<Codec, 'prefix' | 'legacyPrefix'>,
  allowLegacy: boolean,
): (stored: string) => StoredHeader | DecodeReason {
  const forms = [prefix, ...(legacyPrefix === undefined ? [] : [legacyPrefix])].map((template, i) => {
    const [head = '', keyId, tail = ''] = templatePieces(template);
    return { head, hasKeyId: keyId !== undefined, tail, isLegacy: i > 0 };
  });
  return (stored) => {
    const form = forms.find(({ head }) => stored.startsWith(head));
    if (form === undefined) return 'bad_format';
    const { head, hasKeyId, tail, isLegacy } = form;
    const keyEnd = hasKeyId ? stored.indexOf(tail, head.length) : head.length;
    if (keyEnd < 0) return 'bad_format';
    if (isLegacy && !allowLegacy) return 'legacy_refused';
    const keyId = hasKeyId ? stored.slice(head.length, keyEnd) : null;
    return { text: stored.slice(0, keyEnd + tail.length), keyId, isLegacy };
  };
}
