import { createCipheriv, randomBytes } from 'node:crypto';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import test from 'ava';
import fc from 'fast-check';
import { Row } from '../../src/postgres/row.js';
import { type CellAppender, type Codec, type CodecOptions, DecodeError } from '../../src/resource/projection/codec.js';
import { compileCodec } from '../../src/resource/projection/codecs.js';
import { JsonBytes } from '../../src/resource/projection/json-bytes.js';
import { parseKeyring } from '../../src/resource/projection/keyring.js';
import { until } from '../support/patience.js';

const keyIds = ['k1', 'k2'];
const keyring = parseKeyring(JSON.stringify(Object.fromEntries(keyIds.map((id) => [id, key()]))));
const options: CodecOptions = { keyring, legacy: true };

function key(): string {
  return randomBytes(32).toString('base64');
}

const encode: Readonly<Record<string, (bytes: Buffer) => string>> = {
  base64: (bytes) => bytes.toString('base64'),
  base64url: (bytes) => bytes.toString('base64url'),
  hex: (bytes) => bytes.toString('hex'),
  bytea: (bytes) => `\\x${bytes.toString('hex')}`,
};

interface Cell {
  readonly column: string;
  readonly text: string;
}
interface Sealed {
  readonly workspace: string;
  readonly id: string;
  readonly keyId: string;
  readonly region: string;
  readonly cells: readonly Cell[];
}

function stored(codec: Codec, { workspace, id, keyId, region }: Sealed, { column, text }: Cell): string {
  const nonceBytes = codec.layout?.includes('nonce16') ? 16 : 12;
  const tagBytes = codec.layout?.includes('tag12') ? 12 : 16;
  const nonce = randomBytes(nonceBytes);
  const usedKey = typeof codec.keyId === 'string' ? codec.keyId : keyId;
  const cipher = createCipheriv('aes-256-gcm', keyring.get(usedKey) as never, nonce, { authTagLength: tagBytes });
  const values: Record<string, string> = { workspace, table: 'people', column, id, region };
  if (codec.aad)
    cipher.setAAD(Buffer.from(codec.aad.replace(/\{(\w+)\}/g, (_, name: string) => values[name] as string)));
  const data = Buffer.concat([cipher.update(text), cipher.final()]);
  const parts: Record<string, Buffer> = { nonce, data, tag: cipher.getAuthTag() };
  const bytes = Buffer.concat((codec.layout ?? []).map((part) => parts[part.replace(/\d/g, '')] as Buffer));
  return (codec.prefix ?? '').replace('{keyId}', usedKey) + encode[codec.encoding]?.(bytes);
}

const columnNames = ['name', 'street', 'town'];
const columns = columnNames.map((name, at) => ({ name, at }));
const others = new Map([
  ['key_id', 3],
  ['region', 4],
]);

function decoderOf(codec: Codec): CellAppender {
  return compileCodec(codec, options, { table: 'people', columns, otherColumns: others });
}

function outcomes(write: CellAppender, texts: readonly (string | null)[], workspace: string, id: string): string[] {
  const present = { row: Row.make(texts), workspace, id };
  return columns.map((column) => {
    const json = new JsonBytes(1);
    try {
      write(json, column, present);
      return `text ${JSON.parse(json.toString())}`;
    } catch (error) {
      if (!(error instanceof DecodeError)) throw error;
      return error.reason;
    }
  });
}

const layouts = [
  ['nonce12', 'data', 'tag16'],
  ['tag16', 'nonce12', 'data'],
  ['nonce12', 'tag16', 'data'],
  ['data', 'tag16', 'nonce12'],
  ['tag16', 'data', 'nonce12'],
  ['data', 'nonce12', 'tag16'],
  ['nonce16', 'data', 'tag16'],
  ['tag12', 'nonce12', 'data'],
];
const keySources: readonly Partial<Codec>[] = [
  { prefix: 'v1:{keyId}:' },
  { keyId: { column: 'key_id' } },
  { keyId: 'k2', prefix: 'sealed ' },
];
const templates = [
  undefined,
  'customer:{id}',
  '{workspace}|{table}|{column}|{id}',
  '{region}{workspace}/{id}/{region}',
  '{id}.{column}',
  '{table}',
];
const codecs: readonly Codec[] = layouts.flatMap((layout) =>
  templates.flatMap((aad) =>
    keySources.map((source, i): Codec => {
      const names = ['base64', 'base64url', 'hex', ...(source.prefix ? [] : ['bytea'])] as const;
      const encoding = names[(templates.indexOf(aad) + i) % names.length] as Codec['encoding'];
      return { cipher: 'aes-256-gcm', encoding, layout, ...source, ...(aad && { aad }) };
    }),
  ),
);

const word = fc.string({ maxLength: 30, unit: 'binary' });
const row: fc.Arbitrary<Sealed> = fc.record({
  workspace: fc.constantFrom('w1', 'workspace-2'),
  id: fc.oneof(fc.uuid(), fc.nat().map(String)),
  keyId: fc.constantFrom(...keyIds),
  region: fc.string({ maxLength: 20, unit: 'grapheme' }),
  cells: fc
    .tuple(word, fc.constantFrom('', 'Kade', 'x'.repeat(1100)), word)
    .map((texts) => texts.map((text, at) => ({ text, column: columnNames[at] as string }))),
});

for (const codec of codecs) {
  const { layout, encoding, aad, keyId, prefix } = codec;
  const name = [layout?.join(' '), encoding, aad ?? 'no aad', prefix ?? '', JSON.stringify(keyId) ?? ''].join(', ');
  test(`values are read that node:crypto sealed: ${name}`, (t) => {
    const decoder = decoderOf(codec);
    fc.assert(
      fc.property(fc.array(row, { minLength: 1, maxLength: 4 }), (rows) => {
        for (const each of rows) {
          const texts = each.cells.map((cell) => stored(codec, each, cell));
          const [first, second, third] = texts as [string, string, string];
          const plain = [each.keyId, each.region];
          const wanted = each.cells.map(({ text }) => `text ${text}`);
          const damaged = second.slice(0, -1) + (second.endsWith('0') ? '1' : '0');
          t.deepEqual(outcomes(decoder, [...texts, ...plain], each.workspace, each.id), wanted);
          const broken = outcomes(decoder, [first, damaged, third, ...plain], each.workspace, each.id);
          t.deepEqual([broken[0], broken[2]], [wanted[0], wanted[2]]);
          t.regex(broken[1] as string, /^bad_(tag|format)$/);
        }
      }),
      { numRuns: 8 },
    );
  });
}

const vault: Codec = {
  cipher: 'aes-256-gcm',
  encoding: 'base64',
  layout: ['tag16', 'nonce12', 'data'],
  keyId: { column: 'key_id' },
  aad: 'customer:{id}:{region}',
};
const sealedRow: Sealed = { workspace: 'w', id: '7', keyId: 'k1', region: 'north', cells: [] };
const value = stored(vault, sealedRow, { column: 'name', text: 'Jansen' });

test('a value is refused with another row, column of the AAD, or key', (t) => {
  const decoder = decoderOf(vault);
  const only = (id: string, keyId: string | null, region: string | null, text = value): string | undefined =>
    outcomes(decoder, [text, value, value, keyId, region], 'w', id)[0];
  t.is(only('7', 'k1', 'north'), 'text Jansen');
  t.is(only('8', 'k1', 'north'), 'bad_tag');
  t.is(only('7', 'k1', 'south'), 'bad_tag');
  t.is(only('7', 'k2', 'north'), 'bad_tag');
  t.is(only('7', 'k9', 'north'), 'unknown_key');
  t.is(only('7', null, 'north'), 'unknown_key');
  t.is(only('7', 'k1', null), 'bad_format', 'a part of the AAD is NULL');
  t.is(only('7', 'k1', 'north', value.slice(0, 36)), 'bad_format', 'shorter than nonce and tag');
  t.is(only('7', 'k1', 'north'), 'text Jansen');
});

const encoded: readonly [encoding: Codec['encoding'], stored: string, text: string | null][] = [
  ['base64url', 'w6lkLQ', 'éd-'],
  ['base64url', 'w6lkLQ==', 'éd-'],
  ['base64url', 'w6lkLQ=', null],
  ['base64url', 'w6lkLR', null],
  ['base64url', 'w6lk LQ', null],
  ['base64url', 'Pj4+', null],
  ['base64url', 'Pj4-', '>>>'],
  ['base64url', '', ''],
  ['hex', '4a', 'J'],
  ['hex', '4A4a', 'JJ'],
  ['hex', '4a4', null],
  ['hex', '4a4g', null],
  ['hex', '\\x4a', null],
  ['bytea', '\\x4a', 'J'],
  ['bytea', '\\x', ''],
  ['bytea', '4a', null],
  ['bytea', 'J\\112', null],
  ['text', 'é"', 'é"'],
];
for (const [encoding, text, wanted] of encoded) {
  test(`${encoding} ${JSON.stringify(text)} is ${wanted === null ? 'refused' : JSON.stringify(wanted)}`, (t) => {
    const plain = decoderOf({ cipher: 'none', encoding });
    t.is(outcomes(plain, [text, text, text], 'w', '1')[0], wanted === null ? 'bad_format' : `text ${wanted}`);
    if (encoding === 'bytea') return;
    const prefixed = decoderOf({ cipher: 'none', encoding, prefix: 'p:' });
    t.is(outcomes(prefixed, [`p:${text}`, '', ''], 'w', '1')[0], wanted === null ? 'bad_format' : `text ${wanted}`);
    t.is(outcomes(prefixed, [text, '', ''], 'w', '1')[0], 'bad_format');
  });
}

test('one large value holds no memory when it is written', async (t) => {
  const codec: Codec = { cipher: 'aes-256-gcm', encoding: 'base64', keyId: 'k1', layout: ['nonce12', 'data', 'tag16'] };
  const write = decoderOf(codec);
  const cell = { column: 'name', text: 'x'.repeat(20_000_000) };
  const row = { workspace: 'w', id: '1', keyId: 'k1', region: 'eu' };
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const bytesHeld = (): number => {
    collect();
    return process.memoryUsage().arrayBuffers;
  };
  const json = new JsonBytes(64, 1024);
  const writeOnce = (): void => {
    const present = { row: Row.make([stored(codec, { ...row, cells: [] }, cell)]), workspace: 'w', id: '1' };
    write(json, { name: 'name', at: 0 }, present);
    t.is(json.length, cell.text.length + 2);
    json.clear();
  };
  const before = bytesHeld();
  writeOnce();
  t.true(await until(() => bytesHeld() - before < 2_000_000, 10_000), `${bytesHeld() - before} bytes`);
  t.is(json.capacity, 64);
  json.appendText('"small"');
  t.is(json.toString(), '"small"');
});
