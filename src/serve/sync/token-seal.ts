import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { Problem } from '../../base/errors.js';
import { deriveKey } from '../../base/wall-key.js';
import { runOnServer } from '../../postgres/choice.js';
import { prepareSql } from '../../postgres/statement.js';
import { decodeBytes, encodeBytes } from '../read/cursor.js';
import type { ReadDeps } from '../read/routing.js';

/** Seals WAL positions and transaction ids, so that no client can read or forge them. */
export interface TokenSeal {
  encode(context: string, texts: readonly string[]): string;
  /** Returns undefined if the text is damaged or of another context. Throws SealKeyUnknown for a key that is not known here. */
  decode(context: string, encoded: string): string[] | undefined;
  /** Tries again with the keys of other gateways, if this one does not open a token. */
  parseWithEachKey<T>(parse: () => T): Promise<T>;
}

const otherHistory =
  'The data has another history or the gateway another key than the token, after a failover, a restore or a change of keys: start with a pass over everything.';

export function makeExpired(): Problem {
  return new Problem('sync_expired', otherHistory);
}

class SealKeyUnknown extends Problem {}

const [cipher, ivBytes, tagBytes] = ['aes-256-gcm', 12, 16] as const;

/** Seals under a key derived from WALL_KEY: every gateway reads the tokens of the others, also while the key is replaced. */
export function makeTokenSeal(wallKey: string, learn: () => Promise<readonly Buffer[]> = async () => []): TokenSeal {
  const key = deriveKey(wallKey, 'sync');
  let others: readonly Buffer[] = []; // only while a call is read again, so that a retired key opens nothing
  return {
    encode: (context, texts) => {
      const iv = randomBytes(ivBytes);
      const sealing = createCipheriv(cipher, key, iv).setAAD(Buffer.from(context));
      const sealed = [sealing.update(texts.join('\0')), sealing.final()];
      return encodeBytes(context, Buffer.concat([iv, ...sealed, sealing.getAuthTag()]));
    },
    decode: (context, encoded) => {
      const bytes = decodeBytes(context, encoded);
      if (bytes === undefined || bytes.length < ivBytes + tagBytes) return undefined;
      for (const knownKey of [key, ...others]) {
        const opening = createDecipheriv(cipher, knownKey, bytes.subarray(0, ivBytes), { authTagLength: tagBytes });
        opening.setAAD(Buffer.from(context)).setAuthTag(bytes.subarray(-tagBytes));
        try {
          const opened = [opening.update(bytes.subarray(ivBytes, -tagBytes)), opening.final()];
          return Buffer.concat(opened).toString().split('\0');
        } catch {} // sealed under another key
      }
      throw new SealKeyUnknown('sync_expired', otherHistory);
    },
    parseWithEachKey: async (parse) => {
      try {
        return parse();
      } catch (error) {
        if (!(error instanceof SealKeyUnknown)) throw error;
        const learnt = await learn();
        try {
          others = learnt;
          return parse();
        } finally {
          others = [];
        }
      }
    },
  };
}

const syncKeysStatement = prepareSql('sync_keys', 'select gateway.sync_keys()');

/** Reads a sync key for each key of the wall that the database has. */
export function readSyncKeys(
  deps: Pick<ReadDeps, 'replicas' | 'observe' | 'queueWaitMs' | 'lendPrimary'>,
): Promise<Buffer[]> {
  return runOnServer(deps, {}, async ({ target }) => {
    const keys: Buffer[] = [];
    const run = { statement: syncKeysStatement, workspace: null, values: {} };
    await target.short.run(run, { waitMs: deps.queueWaitMs }, (row) => {
      keys.push(Buffer.from(String(row.getTexts()[0]).slice('\\x'.length), 'hex'));
    });
    return keys;
  });
}
