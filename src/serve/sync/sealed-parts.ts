import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { deriveKey } from '../../base/wall-key.js';
import { decodeBytes, encodeBytes } from '../read/page-ends.js';

/** They hold WAL positions and transaction ids: no client can read or forge them. */
export interface SealedParts {
  encode(context: string, parts: readonly string[]): string;
  /** Undefined when damaged or of another context, null when sealed under another WALL_KEY. */
  decode(context: string, encoded: string): string[] | undefined | null;
}

const [cipher, ivBytes, tagBytes] = ['aes-256-gcm', 12, 16] as const;

/** Under a key derived from WALL_KEY: every gateway reads the tokens of the others. */
export function sealedParts(wallKey: string): SealedParts {
  const key = deriveKey(wallKey, 'sync');
  return {
    encode: (context, parts) => {
      const iv = randomBytes(ivBytes);
      const sealing = createCipheriv(cipher, key, iv).setAAD(Buffer.from(context));
      const sealed = [sealing.update(parts.join('\0')), sealing.final()];
      return encodeBytes(context, Buffer.concat([iv, ...sealed, sealing.getAuthTag()]));
    },
    decode: (context, encoded) => {
      const bytes = decodeBytes(context, encoded);
      if (bytes === undefined || bytes.length < ivBytes + tagBytes) return undefined;
      const opening = createDecipheriv(cipher, key, bytes.subarray(0, ivBytes), { authTagLength: tagBytes });
      opening.setAAD(Buffer.from(context)).setAuthTag(bytes.subarray(-tagBytes));
      try {
        const opened = [opening.update(bytes.subarray(ivBytes, -tagBytes)), opening.final()];
        return Buffer.concat(opened).toString().split('\0');
      } catch {
        return null;
      }
    },
  };
}
