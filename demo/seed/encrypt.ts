import { createCipheriv, randomBytes } from 'node:crypto';

/** AES-256 keys (32 bytes each) by key id. */
export type Keys = Record<string, Buffer>;

/**
 * A personal-data value as the reference app stores it: "enc:v2:<key id>:<base64 of iv(12) ‖ ciphertext ‖ tag(16)>".
 * `aadParts` (workspace id, table, column, row id) are the associated data (AAD); version 1, the legacy form, has none.
 */
export function encryptValue(
  keys: Keys,
  keyId: string,
  version: 1 | 2,
  aadParts: readonly string[],
  plaintext: string,
): string {
  const key = keys[keyId];
  if (!key) throw new Error(`no key with id ${keyId}`);
  const iv = randomBytes(12);
  const cipher = createCipheriv('aes-256-gcm', key, iv);
  if (version === 2) cipher.setAAD(Buffer.from(aadParts.join('|'), 'utf8'));
  const sealed = Buffer.concat([iv, cipher.update(plaintext, 'utf8'), cipher.final(), cipher.getAuthTag()]);
  return `enc:v${version}:${keyId}:${sealed.toString('base64')}`;
}
