/** Plain letters without accents and invisible characters: "ｈáｎｄ\u200btekening" → "handtekening". */
export function plainText(text: string): string {
  return hidesLetters.test(text) ? text.normalize('NFKD').replace(/[\p{M}\p{Cf}\p{DI}]/gu, '') : text;
}

/** Beyond ASCII, but for Latin-1's signs. */
export const hidesLetters = /[\u00aa\u00ad\u00ba\u00c0-\uffff]/;

/** Of Latin-1's letters only those in names of members count, because prose has them often. */
export function mayHideLetters(bytes: Buffer, start: number, end: number): boolean {
  let nameEnd = start - 1;
  for (let i = start; i < end; i++) {
    const byte = bytes[i] as number;
    if (byte < 0xc2) continue;
    if (byte === 0xc3) {
      if (nameEnd < i) nameEnd = stringEndsAt(bytes, i, end);
      if (isColonAfter(bytes, nameEnd)) return true;
      continue;
    }
    const next = bytes[i + 1];
    if (byte > 0xc3 || next === 0xaa || next === 0xad || next === 0xba) return true;
  }
  return false;
}

function stringEndsAt(bytes: Buffer, start: number, end: number): number {
  const at = bytes.indexOf(0x22, start);
  return at < 0 || at > end ? end : at;
}

function isColonAfter(bytes: Buffer, at: number): boolean {
  let next = at + 1;
  while (bytes[next] === 0x20) next++;
  return bytes[next] === 0x3a;
}
