import { createCipheriv, type KeyObject, randomBytes } from 'node:crypto';
import { Row } from '../../../postgres/row.js';
import { type Codec, DecodeError, type DecryptMode } from '../codec.js';
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
const unbound: Codec = {
  cipher: 'aes-256-gcm',
  encoding: 'base64',
  prefix: '{keyId}:',
  layout: ['nonce12', 'data', 'tag16'],
};
const bound: Codec = { ...unbound, aad: '{workspace}|{table}|{column}|{id}' };

/** A stored form in which the messages are tried. */
interface Form {
  readonly codec: Codec;
  readonly id: string;
  readonly modes: readonly DecryptMode[];
}

/** The id ends the associated data: it says nothing about messages without them, nor about node:crypto. */
const forms: readonly Form[] = [
  { codec: bound, id: ids[0] as string, modes: ['batched', 'native'] },
  ...ids.slice(1).map((id) => ({ codec: bound, id, modes: ['batched'] as const })),
  { codec: unbound, id: ids[0] as string, modes: ['batched', 'native'] },
];
/** The forms under the second key and the others: neither how lengths of the associated data are handled nor the way over node:crypto depends on the key. */
const fewerForms = forms.filter(({ id }) => id === ids[0]).map((form): Form => ({ ...form, modes: ['batched'] }));

/**
 * Seals messages of many lengths with node:crypto under every key, with and without associated data, and opens them and
 * damaged copies of them in both modes of decryption. Throws an Error on the first difference; it names the key's id, the
 * mode and the length, and no key material. About 30 ms for three keys where no code is compiled yet.
 */
export function verifyKeys(keyring: Keyring): void {
  const mismatches = new Set<string>();
  const reportMismatch = ({ column }: { column: string }) => mismatches.add(column);
  // One for all keys: each has buffers of some 200 KB, which a gateway at rest would keep.
  const cellsOf = (codec: Codec) => {
    const of = (decrypt: DecryptMode) =>
      new SealedCells(codec, { keyring, legacy: true, decrypt, reportMismatch }, { table, columns });
    return { batched: of('batched'), native: of('native') };
  };
  const cells = new Map([bound, unbound].map((codec) => [codec, cellsOf(codec)]));
  const json = new JsonBytes(cipherBytesMax + 4);
  for (const [i, keyId] of keyring.ids.entries()) {
    const key = keyring.get(keyId) as KeyObject;
    for (const { codec, id, modes } of i === 0 ? forms : fewerForms) {
      const texts = messageBytes.map((length) => randomBytes(length).toString('hex').slice(0, length));
      const aadOf = (column: string) => (codec.aad ? `${workspace}|${table}|${column}|${id}` : null);
      const sealed = columns.map(({ name, at }) => seal(key, texts[at] as string, aadOf(name)));
      const damaged = id === ids[0] ? sealed.map(damagedCopy) : [];
      for (const mode of modes) {
        const decoder = (cells.get(codec) as ReturnType<typeof cellsOf>)[mode];
        const open = (messages: readonly Buffer[]): (string | null)[] => {
          const stored = messages.map((message) => `${keyId}:${message.toString('base64')}`);
          decoder.startRow(Row.of(stored), workspace, id);
          return messages.map((_, column) => textOf(decoder, column, json));
        };
        const [whole, broken] = [open(sealed), open(damaged)];
        const wrong = columns.find(
          ({ name, at }) => whole[at] !== texts[at] || (broken[at] ?? null) !== null || mismatches.has(name),
        );
        if (wrong !== undefined) throw differs(keyId, mode, messageBytes[wrong.at] as number);
      }
    }
  }
}

function differs(keyId: string, mode: DecryptMode, bytes: number): Error {
  const advice = mode === 'batched' ? ' Report it, and set DECRYPT=native meanwhile.' : '';
  return new Error(
    `Decryption (${mode}) under key "${keyId}" differs from node:crypto's for a message of ${bytes} bytes.${advice}`,
  );
}

/** The message with another byte in its tag: of 16 messages each has another one. */
function damagedCopy(sealed: Buffer, message: number): Buffer {
  const copy = Buffer.from(sealed);
  const at = copy.length - 1 - (message % 16);
  copy.writeUInt8(copy.readUInt8(at) ^ 1, at);
  return copy;
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
