/** Plain letters without accents and invisible characters: "ｈáｎｄ\u200btekening" → "handtekening". */
export function plainText(text: string): string {
  return hidesLetters.test(text) ? text.normalize('NFKD').replace(/[\p{M}\p{Cf}\p{DI}]/gu, '') : text;
}

/** Beyond ASCII, but for Latin-1's signs. */
export const hidesLetters = /[\u00aa\u00ad\u00ba\u00c0-\uffff]/;

/** Of Latin-1's letters only those in names of members count, because prose has them often. */
export function mayHideLetters(bytes: Buffer, start: number, end: number): boolean {
  let hasLatin = false;
  for (let i = start; i < end; i++) {
    const byte = bytes[i] as number;
    if (byte < 0xc2) continue;
    const next = bytes[i + 1];
    if (byte > 0xc3 || (byte === 0xc2 && (next === 0xaa || next === 0xad || next === 0xba))) return true;
    hasLatin ||= byte === 0xc3;
  }
  return hasLatin && /\xc3[^"\xc3]*" *:/.test(bytes.toString('latin1', start, end));
}
