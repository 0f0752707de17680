import { hash, randomInt } from 'node:crypto';
import { crc32 } from 'node:zlib';

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** Prefix by which scanners recognize a token in logs and source code. */
export const tokenPrefix = 'wdg_';
const shape = new RegExp(`^${tokenPrefix}[0-9A-Za-z]{49}$`);

/** Makes 43 random base62 characters (256 bits) and 6 of a CRC-32, which refuses a mistyped token without a look-up. */
export function makeToken(): string {
  const unchecked = tokenPrefix + Array.from({ length: 43 }, () => alphabet[randomInt(62)]).join('');
  return unchecked + computeChecksum(unchecked);
}

export function isWellFormed(token: string): boolean {
  return shape.test(token) && token.slice(47) === computeChecksum(token.slice(0, 47));
}

/** Hashes the token for storage; 256 random bits need no salt and no stretching. */
export function hashToken(token: string): Buffer {
  return hash('sha256', token, 'buffer');
}

export function deriveTokenKey(token: string): string {
  return hash('sha256', token, 'base64');
}

function computeChecksum(text: string): string {
  let value = crc32(text);
  let digits = '';
  for (let i = 0; i < 6; i++) {
    digits = alphabet.charAt(value % 62) + digits;
    value = Math.floor(value / 62);
  }
  return digits;
}
