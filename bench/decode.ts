import { isUtf8 } from 'node:buffer';
import { createSecretKey, type KeyObject, randomBytes } from 'node:crypto';
import { pathToFileURL } from 'node:url';
import { encryptValue } from '../demo/seed/encrypt.js';
import { customerPlain } from '../demo/seed/plain.js';
import { Row } from '../src/db/row.js';
import { codecPresets } from '../src/definition/load.js';
import { openNative } from '../src/projection/aes-gcm/gcm-key.js';
import type { Codec, CodecOptions } from '../src/projection/codec.js';
import { compileCodec } from '../src/projection/codecs.js';
import { JsonBytes } from '../src/projection/json-bytes.js';
import { parseKeyring } from '../src/projection/keyring.js';

/**
 * Cost of decoding a customer's encrypted cells, in µs per cell, by each way that the project keeps:
 * `node dist/bench/decode.js [customers]`. The ways alternate; the median round counts. It is
 * processor time of the whole process, as a cipher per cell costs garbage collection too, and other work on the machine
 * shall not count.
 */

const workspace = '5e6f4d0a-6d0c-4f0e-8a53-2f5a3c1b9d11';
const columns = ['naam', 'straat', 'huisnummer', 'toevoeging', 'postcode', 'plaats', 'kvk_nummer'];
const rounds = 15;

/** A customer: its encrypted cells, then its id. */
type Stored = readonly (string | null)[];

/** Decodes all cells of a customer to JSON strings, and returns their summed length in bytes. */
type Way = (stored: Stored) => number;

function customers(count: number, key: Buffer): Stored[] {
  return Array.from({ length: count }, (_, n) => {
    const { id, naam, kvkNummer, adres } = customerPlain(0, n + 1);
    const { straat, huisnummer, toevoeging, postcode, plaats } = adres;
    const texts = [naam, straat, huisnummer, toevoeging, postcode, plaats, kvkNummer];
    const seal = (text: string, at: number): string =>
      encryptValue({ k1: key }, 'k1', 2, [workspace, 'klanten', columns[at] as string, id], text);
    return [...texts.map((text, at) => (text === null ? null : seal(text, at))), id];
  });
}

/** A decipher per cell: the plain way to use node:crypto. */
function perCell(key: KeyObject): Way {
  const header = 'enc:v2:k1:'.length;
  return (stored) => {
    let length = 0;
    for (const [at, column] of columns.entries()) {
      const value = stored[at];
      if (typeof value !== 'string') continue;
      const base64 = value.slice(header);
      const sealed = Buffer.from(base64, 'base64');
      if (sealed.toString('base64') !== base64) throw new Error('not canonical');
      const text = openNative(key, sealed, Buffer.from(`${workspace}|klanten|${column}|${stored[7]}`));
      if (text === null || !isUtf8(text)) throw new Error('not decoded');
      length += Buffer.byteLength(JSON.stringify(text.toString('utf8')));
    }
    return length;
  };
}

/** The codec of the gateway: the cells of a row together. */
function perRow(options: CodecOptions): Way {
  const decoder = compileCodec(codecPresets()['aes-256-gcm'] as Codec, options, {
    table: 'klanten',
    columns: columns.map((name, at) => ({ name, at })),
  });
  const json = new JsonBytes(4096);
  return (stored) => {
    decoder.startRow(Row.of(stored), workspace, stored[7] as string);
    json.clear();
    for (let at = 0; at < columns.length; at++) if (stored[at] !== null) decoder.writeCell(at, json);
    return json.length;
  };
}

/** µs per cell of each way, in alternating rounds over all customers. */
function measure(count: number): { way: string; microseconds: number }[] {
  const key = randomBytes(32);
  const rows = customers(count, key);
  const cells = rows.flat().filter((cell) => cell !== null).length - rows.length;
  const keyring = parseKeyring(JSON.stringify({ k1: key.toString('base64') }));
  const ways: [string, Way][] = [
    ['a decipher per cell (node:crypto)', perCell(createSecretKey(key))],
    [
      'the cells of a row together (this project)',
      perRow({ keyring, legacy: false, decrypt: 'batched', reportMismatch: () => {} }),
    ],
  ];
  const times: number[][] = ways.map(() => []);
  const lengths = new Set<number>();
  for (let round = 0; round < rounds; round++) {
    for (const [at, [, way]] of ways.entries()) {
      const begin = process.cpuUsage();
      lengths.add(rows.reduce((sum, row) => sum + way(row), 0));
      const { user, system } = process.cpuUsage(begin);
      times[at]?.push((user + system) / cells);
    }
  }
  if (lengths.size !== 1) throw new Error('the ways do not agree');
  return ways.map(([way], at) => ({ way, microseconds: median(times[at] as number[]) }));
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] as number;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  process.stdout.write(`Node ${process.version}: µs per cell\n`);
  for (const { way, microseconds } of measure(Number(process.argv[2] ?? 3000))) {
    process.stdout.write(`${microseconds.toFixed(2).padStart(7)}  ${way}\n`);
  }
}
