export interface SealPart {
  /** Size; 0 for the ciphertext. */
  readonly bytes: number;
  /** Position without the ciphertext before it. */
  readonly at: number;
  /** 1 if the ciphertext is before the part. */
  readonly behindData: 0 | 1;
}

export interface SealLayout {
  readonly nonce: SealPart;
  readonly data: SealPart;
  readonly tag: SealPart;
  readonly overheadBytes: number;
}

const partPattern = /^(nonce|data|tag)(\d*)$/;

/** Turns ["tag16", "nonce12", "data"] into positions; null unless each part occurs once. */
export function parseSealLayout(layout: readonly string[]): SealLayout | null {
  const parts = new Map<string, SealPart>();
  let at = 0;
  for (const text of layout) {
    const [, name = '', size = ''] = partPattern.exec(text) ?? [];
    const bytes = Number(size);
    if (name === '' || parts.has(name) || (name === 'data') !== (bytes === 0)) return null;
    parts.set(name, { bytes, at, behindData: parts.has('data') ? 1 : 0 });
    at += bytes;
  }
  const [nonce, data, tag] = ['nonce', 'data', 'tag'].map((name) => parts.get(name));
  return nonce && data && tag ? { nonce, data, tag, overheadBytes: at } : null;
}
