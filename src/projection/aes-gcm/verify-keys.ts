import { createCipheriv, type KeyObject, randomBytes } from 'node:crypto';
import { Row } from '../../db/row.js';
import type { Codec, DecryptMode } from '../codec.js';
import { DecodeError } from '../decode-error.js';
import { JsonBytes } from '../json-bytes.js';
import type { Keyring } from '../keyring.js';
import { cipherBytesMax } from './gcm-key.js';
import { SealedCells } from './sealed-cells.js';

/** Bytes of the test messages: around the limits of a block, of four blocks and of the batched decryption. */
const messageBytes = [0, 1, 15, 16, 17, 31, 32, 33, 47, 48, 49, 63, 64, 65, 255, 256, 257];
for (let bytes = cipherBytesMax - 4; bytes <= cipherBytesMax + 1; bytes++) messageBytes.push(bytes);
/** Ids of rows, which end the associated data. */
const ids = [1, 16, 36].map((length) => 'i'.repeat(length));
const [workspace, table] = ['workspace', 'table'];
const columns = messageBytes.map((_, at) => ({ name: `column${'_'.repeat(at)}`, at }));
const codec: Codec = {
  cipher: 'aes-256-gcm',
  encoding: 'base64',
  prefix: 'v2:{keyId}:',
  legacyPrefix: 'v1:{keyId}:',
  layout: ['nonce12', 'data', 'tag16'],
  aad: '{workspace}|{table}|{column}|{id}',
};

/**
 * Seals messages of many lengths with node:crypto under every key, with and without associated data, and opens them and
 * damaged copies of them in both modes of decryption. Throws an Error on the first difference; it names the key's id, the
 * mode and the length, and no key material. About 20 ms per key.
 */
export function verifyKeys(keyring: Keyring): void {
  for (const keyId of keyring.ids) {
    for (const mode of ['batched', 'native'] as const) {
      const wrongBytes = firstWrong(keyring, keyId, mode);
      if (wrongBytes === undefined) continue;
      const advice = mode === 'batched' ? ' Report it, and set DECRYPT=native meanwhile.' : '';
      throw new Error(
        `Decryption (${mode}) under key "${keyId}" differs from node:crypto's for a message of ${wrongBytes} bytes.${advice}`,
      );
    }
  }
}

/** Length of the first message that is opened wrongly or, damaged, is opened at all; undefined when all is right. */
function firstWrong(keyring: Keyring, keyId: string, decrypt: DecryptMode): number | undefined {
  const key = keyring.get(keyId) as KeyObject;
  const mismatches = new Set<string>();
  const json = new JsonBytes(cipherBytesMax + 4);
  const reportMismatch = ({ column }: { column: string }) => mismatches.add(column);
  const cells = new SealedCells(codec, { keyring, legacy: true, decrypt, reportMismatch }, { table, columns });
  for (const version of ['v2', 'v1']) {
    // The id ends the associated data: it says nothing about messages without them, nor about node:crypto.
    for (const id of decrypt === 'batched' && version === 'v2' ? ids : ids.slice(0, 1)) {
      const texts = messageBytes.map((length) => randomBytes(length).toString('hex').slice(0, length));
      const sealed = columns.map(({ name, at }) =>
        seal(key, texts[at] as string, version === 'v2' ? `${workspace}|${table}|${name}|${id}` : null),
      );
      const open = (messages: readonly Buffer[]): (string | null)[] => {
        const stored = messages.map((message) => `${version}:${keyId}:${message.toString('base64')}`);
        cells.startRow(Row.of(stored), workspace, id);
        return columns.map((_, column) => textOf(cells, column, json));
      };
      const whole = open(sealed);
      for (const bytes of sealed) bytes.writeUInt8(bytes.readUInt8(bytes.length - 1) ^ 1, bytes.length - 1);
      const damaged = id === ids[0] ? open(sealed) : [];
      const wrong = columns.find(
        ({ name, at }) => whole[at] !== texts[at] || (damaged[at] ?? null) !== null || mismatches.has(name),
      );
      if (wrong !== undefined) return messageBytes[wrong.at];
    }
  }
  return undefined;
}

/** iv ‖ ciphertext ‖ tag. */
function seal(key: KeyObject, text: string, aad: string | null): Buffer {
  const iv = randomBytes(12);
  const cipher = createCipheriv('aes-256-gcm', key, iv);
  if (aad !== null) cipher.setAAD(Buffer.from(aad));
  return Buffer.concat([iv, cipher.update(text), cipher.final(), cipher.getAuthTag()]);
}

/** The text of a cell, null when it is refused. */
function textOf(cells: SealedCells, column: number, json: JsonBytes): string | null {
  json.clear();
  try {
    cells.writeCell(column, json);
    return JSON.parse(json.toString());
  } catch (error) {
    if (error instanceof DecodeError) return null;
    throw error;
  }
}
