/** Plain letters without invisible characters: "ｈａｎｄ\u200btekening" → "handtekening". */
export function plainText(text: string): string {
  return hidesLetters.test(text) ? text.normalize('NFKC').replace(/[\p{Cf}\p{DI}]/gu, '') : text;
}

/** Beyond Latin-1, and of it ª, º and the soft hyphen. */
export const hidesLetters = /[\u00aa\u00ad\u00ba\u0100-\uffff]/;

export function mayHideLetters(bytes: Buffer, start: number, end: number): boolean {
  for (let i = start; i < end; i++) {
    const byte = bytes[i] as number;
    if (byte < 0xc2 || byte === 0xc3) continue;
    const next = bytes[i + 1];
    if (byte > 0xc3 || next === 0xaa || next === 0xad || next === 0xba) return true;
  }
  return false;
}
