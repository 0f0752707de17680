import { createCipheriv, randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import fc from 'fast-check';
import { projectRoot } from '../../src/base/paths.js';
import { Row, viewWords } from '../../src/postgres/row.js';
import { readCodecPresets } from '../../src/resource/definition/load.js';
import {
  type CellAppender,
  type CellContext,
  type Codec,
  type CodecOptions,
  DecodeError,
  type DecodeFunction,
  type DecodeReason,
  type EncodedColumn,
  loadCodecModule,
  type PresentRow,
} from '../../src/resource/projection/codec.js';
import { compileCodec } from '../../src/resource/projection/codecs.js';
import { encodeJson, JsonBytes } from '../../src/resource/projection/json-bytes.js';
import { parseKeyring } from '../../src/resource/projection/keyring.js';

const keyring = parseKeyring(
  JSON.stringify(
    Object.fromEntries(['k1', 'k2', 'k3', 'k5', 'k9'].map((id) => [id, randomBytes(32).toString('base64')])),
  ),
);
const workspace = '5e6f4d0a-6d0c-4f0e-8a53-2f5a3c1b9d11';
const row = '0b0e7c7e-1c5e-4a57-9d0b-4c6f1f1f1f01';
const lenient: CodecOptions = { keyring, legacy: true };
const presets = readCodecPresets();
const straat = cellDecoder('aes-256-gcm', lenient, 'klanten', 'straat');

function written(write: CellAppender, column: EncodedColumn, present: PresentRow): string {
  const json = new JsonBytes(1);
  write(json, column, present);
  return json.toString();
}

function compiled(name: string, options: CodecOptions, table: string, columns: readonly EncodedColumn[]): CellAppender {
  const codec = presets[name] as Codec;
  return compileCodec(codec, options, { table, columns });
}

function cellDecoder(name: string, options: CodecOptions, table: string, column: string) {
  const encoded = { name: column, at: 0 };
  const write = compiled(name, options, table, [encoded]);
  return (stored: string, inWorkspace: string, inRow: string): string =>
    JSON.parse(written(write, encoded, { row: Row.make([stored]), workspace: inWorkspace, id: inRow }));
}

function encrypt(text: string | Buffer, place?: string, id = 'k1'): string {
  const key = keyring.get(id);
  if (key === undefined) throw new Error(`no key ${id}`);
  const iv = randomBytes(12);
  const cipher = createCipheriv('aes-256-gcm', key, iv);
  if (place !== undefined) cipher.setAAD(Buffer.from(place));
  const sealed = Buffer.concat([iv, cipher.update(text), cipher.final(), cipher.getAuthTag()]);
  return `enc:${place === undefined ? 'v1' : 'v2'}:${id}:${sealed.toString('base64')}`;
}

const here = `${workspace}|klanten|straat|${row}`;

function refuses(t: ExecutionContext, decode: () => string, reason: DecodeReason): void {
  const error = t.throws(decode, { instanceOf: DecodeError });
  t.is(error.reason, reason);
  t.is(error.message, reason);
}

test('a value is read in the cell it was encrypted for, whatever its text and key', (t) => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 300 }), fc.constantFrom(...keyring.ids), (text, id) => {
      t.is(straat(encrypt(text, here, id), workspace, row), text);
    }),
  );
  t.is(straat(encrypt('', here), workspace, row), '');
  t.is(straat(encrypt('\uFEFFé €', here), workspace, row), '\uFEFFé €');
});

test('values of every length are read', (t) => {
  for (const length of [0, 1, 15, 16, 17, 1021, 1022, 1023, 1024, 1025, 5000]) {
    const text = 'é"\\x'.repeat(length).slice(0, length);
    const stored = encrypt(text, here);
    t.is(straat(stored, workspace, row), text, `${length} characters`);
    refuses(t, () => straat(stored, workspace, row.replace('1', '2')), 'bad_tag');
    refuses(t, () => straat(`${stored.slice(0, -4)}AAAA`, workspace, row), 'bad_tag');
    refuses(t, () => straat(`${stored.slice(0, -4)}AA!A`, workspace, row), 'bad_format');
    t.is(straat(encrypt(text), workspace, row), text);
  }
  refuses(t, () => straat(encrypt(Buffer.alloc(3000, 0xff), here), workspace, row), 'bad_utf8');
});

test('keys, versions, faults and empty cells do not disturb the other cells of a row', (t) => {
  const names = ['naam', 'straat', 'huisnummer', 'plaats', 'kvk_nummer'];
  const columns = names.map((name, at) => ({ name, at }));
  const write = compiled('aes-256-gcm', lenient, 'klanten', columns);
  const kinds = fc.constantFrom('bound', 'legacy', 'moved', 'garbled', 'unknown', 'empty', 'long', 'binary');
  const cell = fc.record({ kind: kinds, text: fc.string({ maxLength: 60 }), id: fc.constantFrom(...keyring.ids) });
  const cells = fc.tuple(cell, cell, cell, cell, cell);
  fc.assert(
    fc.property(fc.array(fc.tuple(cells, fc.uuid(), fc.constantFrom(workspace, row))), (rows) => {
      for (const [contents, id, inWorkspace] of rows) {
        const place = (name: string | undefined): string => `${inWorkspace}|klanten|${name}|${id}`;
        const stored = contents.map(({ kind, text, id: key }, at) => {
          if (kind === 'empty') return null;
          if (kind === 'legacy') return encrypt(text, undefined, key);
          if (kind === 'moved') return encrypt(text, place(names[(at + 1) % names.length]), key);
          if (kind === 'garbled') return encrypt(text, place(names[at]), key).slice(0, -1);
          if (kind === 'unknown') return encrypt(text, place(names[at]), key).replace(`:${key}:`, ':other:');
          if (kind === 'binary') return encrypt(Buffer.from([0x80]), place(names[at]), key);
          return encrypt(kind === 'long' ? text.padEnd(2000, '€') : text, place(names[at]), key);
        });
        const reasons: Record<string, DecodeReason> = {
          ...{ moved: 'bad_tag', garbled: 'bad_format', unknown: 'unknown_key', binary: 'bad_utf8' },
        };
        const present = { row: Row.make(stored), workspace: inWorkspace, id };
        for (const [at, { kind, text }] of contents.entries()) {
          const reason = reasons[kind];
          if (reason !== undefined) refuses(t, () => written(write, columns[at] as EncodedColumn, present), reason);
          else if (kind !== 'empty') {
            t.is(
              written(write, columns[at] as EncodedColumn, present),
              JSON.stringify(kind === 'long' ? text.padEnd(2000, '€') : text),
            );
          }
        }
      }
    }),
  );
});

test('a value moved to another row, column, table or workspace is refused', (t) => {
  const stored = encrypt('Dorpsstraat', here);
  refuses(t, () => straat(stored, workspace, row.replace('1', '2')), 'bad_tag');
  refuses(t, () => straat(stored, workspace.replace('5', '6'), row), 'bad_tag');
  refuses(t, () => cellDecoder('aes-256-gcm', lenient, 'klanten', 'plaats')(stored, workspace, row), 'bad_tag');
  refuses(t, () => cellDecoder('aes-256-gcm', lenient, 'users', 'straat')(stored, workspace, row), 'bad_tag');
});

test('every single-bit flip of a stored value is refused', (t) => {
  const flipAll = (stored: string): void => {
    for (let at = 0; at < stored.length; at++) {
      for (let bit = 0; bit < 16; bit++) {
        const flipped =
          stored.slice(0, at) + String.fromCharCode(stored.charCodeAt(at) ^ (1 << bit)) + stored.slice(at + 1);
        t.throws(() => straat(flipped, workspace, row), { instanceOf: DecodeError }, `bit ${bit} of character ${at}`);
      }
    }
  };
  for (const text of ['', 'a', 'Kade', 'Dorpsstraat']) flipAll(encrypt(text, here));
});

test('a legacy value is read where that is allowed and refused where it is not', (t) => {
  const stored = encrypt('Dorpsstraat');
  t.is(straat(stored, workspace, row), 'Dorpsstraat');
  const strict = cellDecoder('aes-256-gcm', { ...lenient, legacy: false }, 'klanten', 'straat');
  refuses(t, () => strict(stored, workspace, row), 'legacy_refused');
  t.is(strict(encrypt('Dorpsstraat', here), workspace, row), 'Dorpsstraat');
});

test('relabelling a value as another version does not make it readable', (t) => {
  refuses(t, () => straat(encrypt('Dorpsstraat', here).replace('v2', 'v1'), workspace, row), 'bad_tag');
  refuses(t, () => straat(encrypt('Dorpsstraat').replace('v1', 'v2'), workspace, row), 'bad_tag');
});

test('an unknown key, another key and a value of another form are told apart', (t) => {
  const stored = encrypt('Dorpsstraat', here);
  refuses(t, () => straat(stored.replace('k1', 'k7'), workspace, row), 'unknown_key');
  refuses(t, () => straat(stored.replace('k1', ''), workspace, row), 'unknown_key');
  refuses(t, () => straat(stored.replace('k1', 'k2'), workspace, row), 'bad_tag');
  const [body] = stored.split(':').slice(3);
  for (const other of ['', 'Dorpsstraat', 'enc:', 'enc:v2:', 'enc:v2:k1', 'enc:v2:k1:', `enc:v3:k1:${body}`])
    refuses(t, () => straat(other, workspace, row), 'bad_format');
  const tooShort = randomBytes(27).toString('base64');
  refuses(t, () => straat(`enc:v2:k1:${tooShort}`, workspace, row), 'bad_format');
  for (const garbled of [
    `${stored} `,
    `${stored}\n`,
    stored.replace(/=*$/, ''),
    stored.replace('k1:', 'k1:!'),
    `${stored}=`,
  ]) {
    if (garbled !== stored) refuses(t, () => straat(garbled, workspace, row), 'bad_format');
  }
});

test('base64 is read when it is canonical base64 of UTF-8 and refused otherwise', (t) => {
  const land = cellDecoder('base64', lenient, 'klanten', 'land');
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      t.is(land(Buffer.from(text).toString('base64'), workspace, row), text);
    }),
  );
  for (const stored of ['TmVk*', 'TmVk\n', 'TmV', 'TmVkZQ', 'TmVkZR==', 'TmVkZQ=', '__8=', '===='])
    refuses(t, () => land(stored, workspace, row), 'bad_format');
  for (const bytes of [[0xff], [0xc3], [0xed, 0xa0, 0x80], [0xc0, 0x80]])
    refuses(t, () => land(Buffer.from(bytes).toString('base64'), workspace, row), 'bad_utf8');
});

test('plain is the value as it stands', (t) => {
  t.is(cellDecoder('plain', lenient, 'klanten', 'land')('enc:v2:k1:', workspace, row), 'enc:v2:k1:');
});

test('a value of today that begins as an older one does is read behind one', (t) => {
  const preset = presets['aes-256-gcm'] as Codec;
  const older: Codec = { ...(preset.older as Codec), prefix: 'enc:', keyId: 'k1' };
  const codec: Codec = { ...preset, prefix: 'enc:2:', keyId: 'k1', aad: '{id}', older };
  const column = { name: 'straat', at: 0 };
  const write = compileCodec(codec, lenient, { table: 'klanten', columns: [column] });
  for (const text of ['a', 'B', 'c', 'D', 'e']) {
    const today = encrypt(text, row).replace('enc:v2:k1:', 'enc:2:');
    const before = encrypt(text).replace('enc:v1:k1:', 'enc:');
    const present = { row: Row.make([text < 'a' ? before : today]), workspace, id: row };
    t.is(JSON.parse(written(write, column, present)), text);
  }
});

test('older values of another form are read by the codec that is named for them, where that is allowed', (t) => {
  const codec = presets['aes-256-gcm'] as Codec;
  const columns = ['naam', 'straat'].map((name, at) => ({ name, at }));
  const read = (older: Codec, options: CodecOptions, stored: string): string => {
    const write = compileCodec({ ...codec, older }, options, { table: 'klanten', columns });
    return JSON.parse(
      written(write, columns[1] as EncodedColumn, { row: Row.make([null, stored]), workspace, id: row }),
    );
  };
  const base64 = presets.base64 as Codec;
  const sealed = encrypt('Kade', here);
  const strict = { ...lenient, legacy: false };
  const unbound: Codec = { ...codec, encoding: 'hex', prefix: 'oud:', keyId: 'k2' };
  const older = `oud:${Buffer.from(encrypt('Gracht', here, 'k2').slice(10), 'base64').toString('hex')}`;
  t.is(read(base64, lenient, 'S2FkZQ=='), 'Kade');
  t.is(read(unbound, lenient, older), 'Gracht');
  for (const each of [base64, unbound]) t.is(read(each, lenient, sealed), 'Kade');
  refuses(t, () => read(unbound, lenient, 'S2FkZQ=='), 'bad_format');
  refuses(t, () => read(presets.plain as Codec, lenient, sealed.replace('v2', 'v3')), 'bad_format');
  refuses(t, () => read(base64, strict, 'S2FkZQ=='), 'legacy_refused');
  refuses(t, () => read(unbound, strict, older), 'legacy_refused');
  t.is(read(base64, strict, sealed), 'Kade');
});

const folder = mkdtempSync(join(tmpdir(), 'codec-'));
test.after.always(() => rmSync(folder, { recursive: true }));
const moduleKeyring = parseKeyring(JSON.stringify({ k1: Buffer.alloc(32).toString('base64') }));
const options = (decode?: DecodeFunction): CodecOptions => ({
  keyring: moduleKeyring,
  legacy: false,
  decode,
});

function moduleDecoded(codec: Codec, decode: DecodeFunction, stored: string, keyId: string | null = 'k1'): unknown {
  const rows = { table: 'people', columns: [{ name: 'name', at: 0 }], otherColumns: new Map([['key_id', 1]]) };
  const write = compileCodec(codec, options(decode), rows);
  const present = { row: Row.make([stored, keyId]), workspace: 'w', id: '7' };
  try {
    return JSON.parse(written(write, rows.columns[0] as EncodedColumn, present));
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error;
    return error;
  }
}

const hex: Codec = { cipher: 'module', encoding: 'hex', prefix: 'x{keyId}:' };

test('a module gets bytes or text, and the cell they come from', (t) => {
  const seen: [unknown, CellContext][] = [];
  const decode: DecodeFunction = (stored, context) => {
    seen.push([stored, context]);
    return 'a "text" \u2028';
  };
  t.is(moduleDecoded(hex, decode, 'xk1:4a4b'), 'a "text" \u2028');
  t.is(
    moduleDecoded({ cipher: 'module', encoding: 'text', keyId: { column: 'key_id' } }, decode, 'as it is', 'k9'),
    'a "text" \u2028',
  );
  const given = seen.map(([stored]) => stored);
  t.deepEqual(given, [Buffer.from('JK'), 'as it is']);
  const { keys, ...cell } = (seen[0] as [unknown, CellContext])[1];
  t.deepEqual(cell, { workspace: 'w', table: 'people', column: 'name', id: '7', keyId: 'k1' });
  t.is(keys.get('k1'), moduleKeyring.get('k1'));
  t.is(keys.get('k9'), undefined);
  t.is(seen[1]?.[1].keyId, 'k9');
});

test('errors of a module and results that are no text are decode errors without its words', (t) => {
  const faulty: Readonly<Record<string, DecodeFunction>> = {
    error: () => {
      throw new Error('secret');
    },
    'no text': () => 7 as unknown as string,
    promise: () => Promise.resolve('secret') as unknown as string,
    'too long': () => 'x'.repeat(1_048_577),
  };
  for (const [name, decode] of Object.entries(faulty)) {
    const error = moduleDecoded(hex, decode, 'xk1:4a') as DecodeError;
    t.is(error.reason, 'module', name);
    t.false(`${error.stack} ${JSON.stringify(error)} ${error.cause}`.includes('secret'));
  }
  t.is((moduleDecoded(hex, () => '', 'xk1:4z') as DecodeError).reason, 'bad_format');
  t.is((moduleDecoded(hex, () => '', 'k1:4a') as DecodeError).reason, 'bad_format');
});

test('a codec of cipher module is refused without a module', (t) => {
  t.throws(() => compileCodec(hex, options(), { table: 'people', columns: [] }), {
    message: /CODEC_MODULE is not set/,
  });
});

test('the example of docs/adopt/keys.md decodes what node:crypto sealed', async (t) => {
  const guide = readFileSync(join(projectRoot, 'docs/adopt/keys.md'), 'utf8');
  const path = join(folder, 'example.mjs');
  writeFileSync(path, /```js\n([\s\S]*?)```/.exec(guide)?.[1] ?? '');
  const decode = (await loadCodecModule(path)) as DecodeFunction;
  const iv = randomBytes(12);
  const cipher = createCipheriv('aes-256-gcm', Buffer.alloc(32), iv);
  const data = Buffer.concat([cipher.update('Jansen é'), cipher.final()]);
  const parts = [iv, cipher.getAuthTag(), data].map((part) => part.toString('hex'));
  const own: Codec = { cipher: 'module', encoding: 'text', keyId: 'k1' };
  t.is(moduleDecoded(own, decode, parts.join(':')), 'Jansen é');
  t.is((moduleDecoded(own, decode, parts.toReversed().join(':')) as DecodeError).reason, 'module');
});

const modules: readonly (readonly [name: string, source: string | null, refusal: RegExp | null])[] = [
  ['whole', 'export default (stored) => String(stored);', null],
  ['class', 'export default { decode() {} };', /class\.mjs has no function as its default export/],
  ['named', 'export const decode = () => "";', /named\.mjs has no function as its default export/],
  ['async', 'export default async () => "";', /the function of .*async\.mjs is asynchronous or a generator/],
  ['generator', 'export default function* () {}', /the function of .*generator\.mjs is asynchronous or a generator/],
  ['broken', 'export default (', /broken\.mjs cannot be loaded: /],
  ['throwing', 'throw new Error("at load");', /throwing\.mjs cannot be loaded: at load/],
  ['absent', null, /absent\.mjs cannot be loaded: Cannot find module/],
];
for (const [name, source, refusal] of modules) {
  test(`a codec module is ${refusal === null ? 'loaded' : 'refused'}: ${name}`, async (t) => {
    const path = join(folder, `${name}.mjs`);
    if (source !== null) writeFileSync(path, source);
    if (refusal === null) t.is((await loadCodecModule(path))?.('a', {} as CellContext), 'a');
    else await t.throwsAsync(loadCodecModule(path), { message: refusal });
  });
}

test('no module is loaded when the setting is empty', async (t) => {
  t.is(await loadCodecModule(''), undefined);
});

const text = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc
    .array(fc.constantFrom('a', '"', '\\', '\n', '\u001f', ' ', '\u007f', 'é', '𝄞', 'abcd'), { maxLength: 20 })
    .map((some) => some.join('')),
);
const around = fc.string({ maxLength: 5, unit: 'binary' });

test('a text is the same JSON string by bytes and by words, wherever it stands', (t) => {
  fc.assert(
    fc.property(text, around, around, (value, before, behind) => {
      const bytes = Buffer.from(`${before}${value}${behind}`);
      const [start, size] = [Buffer.byteLength(before), Buffer.byteLength(value)];
      const json = new JsonBytes(1);
      json.appendStringSpan({ bytes, words: viewWords(bytes) }, start, start + size);
      json.appendComma();
      json.appendString(bytes, start, start + size);
      t.is(json.toString(), `${JSON.stringify(value)},${JSON.stringify(value)}`);
    }),
    { numRuns: 3000 },
  );
});

test('bytes and constants of any length are copied as they are', (t) => {
  fc.assert(
    fc.property(fc.string({ maxLength: 300 }), around, around, (value, before, behind) => {
      const bytes = Buffer.from(`${before}${value}${behind}`);
      const [start, size] = [Buffer.byteLength(before), Buffer.byteLength(value)];
      const json = new JsonBytes(1);
      json.appendSpan({ bytes, words: viewWords(bytes) }, start, start + size);
      json.appendConstant(encodeJson(value));
      json.appendQuoted({ bytes, words: viewWords(bytes) }, start, start + size);
      t.is(json.toString(), `${value}${value}"${value}"`);
    }),
  );
});

test('a moment has milliseconds, cut or filled up', (t) => {
  for (const [fraction, milliseconds] of [
    ['', '000'],
    ['.5', '500'],
    ['.123456', '123'],
    ['.999999', '999'],
  ]) {
    const bytes = Buffer.from(`x2026-03-29 01:59:59${fraction}+00`);
    const json = new JsonBytes(1);
    json.appendInstant({ bytes, words: viewWords(bytes) }, 1, bytes.length - 3);
    t.is(json.toString(), `"2026-03-29T01:59:59.${milliseconds}Z"`);
  }
});
