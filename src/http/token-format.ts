import { createHash, randomInt } from 'node:crypto';
import { crc32 } from 'node:zlib';

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const shape = /^wdg_[0-9A-Za-z]{49}$/;

/** What every token begins with, so that one can be told where it does not belong. */
export const tokenPrefix = 'wdg_';

/** A new token: "wdg_", 43 random base62 characters (256 bits) and 6 of a CRC-32, so that typing errors never reach a database. */
export function newToken(): string {
  const secret = Array.from({ length: 43 }, () => alphabet[randomInt(62)]).join('');
  return `wdg_${secret}${checksum(`wdg_${secret}`)}`;
}

/** Whether the text can be a token at all. */
export function wellFormed(token: string): boolean {
  return shape.test(token) && token.slice(47) === checksum(token.slice(0, 47));
}

/** SHA-256 of the token's text: what is stored and looked up. 256 random bits need no salt and no stretching. */
export function tokenHash(token: string): Buffer {
  return createHash('sha256').update(token, 'latin1').digest();
}

function checksum(text: string): string {
  let value = crc32(text);
  let digits = '';
  for (let i = 0; i < 6; i++) {
    digits = alphabet.charAt(value % 62) + digits;
    value = Math.floor(value / 62);
  }
  return digits;
}
