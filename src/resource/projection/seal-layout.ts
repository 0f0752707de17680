/** A part of a sealed value. */
export interface SealPart {
  /** 0 for the ciphertext, whose length differs. */
  readonly bytes: number;
  /** Position in the value, without the ciphertext before it. */
  readonly at: number;
  /** 1 when the ciphertext stands before it, else 0. */
  readonly behindData: 0 | 1;
}

/** Places of nonce, ciphertext and tag in the bytes of a sealed value. */
export interface SealLayout {
  readonly nonce: SealPart;
  readonly data: SealPart;
  readonly tag: SealPart;
  /** Bytes of nonce and tag. */
  readonly overheadBytes: number;
}

const partPattern = /^(nonce|data|tag)(\d*)$/;

/** ["tag16", "nonce12", "data"] → their places; null unless there is each part once. */
export function sealLayout(layout: readonly string[]): SealLayout | null {
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
