export interface SealSegment {
  /** Size; 0 for the ciphertext. */
  readonly bytes: number;
  /** Position without the ciphertext before it. */
  readonly at: number;
  /** 1 if the ciphertext is before the segment. */
  readonly behindData: 0 | 1;
}

export interface SealLayout {
  readonly nonce: SealSegment;
  readonly data: SealSegment;
  readonly tag: SealSegment;
  readonly overheadBytes: number;
}

const segmentPattern = /^(nonce|data|tag)(\d*)$/;

/** Turns ["tag16", "nonce12", "data"] into positions; null unless each part occurs once. */
export function parseSealLayout(layout: readonly string[]): SealLayout | null {
  const segments = new Map<string, SealSegment>();
  let at = 0;
  for (const text of layout) {
    const [, name = '', size = ''] = segmentPattern.exec(text) ?? [];
    const bytes = Number(size);
    if (name === '' || segments.has(name) || (name === 'data') !== (bytes === 0)) return null;
    segments.set(name, { bytes, at, behindData: segments.has('data') ? 1 : 0 });
    at += bytes;
  }
  const [nonce, data, tag] = ['nonce', 'data', 'tag'].map((name) => segments.get(name));
  return nonce && data && tag ? { nonce, data, tag, overheadBytes: at } : null;
}
