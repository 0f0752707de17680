import { createCipheriv, randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { Row } from '../../src/db/row.js';
import { projectRoot } from '../../src/paths.js';
import {
  type CellContext,
  type Codec,
  type CodecOptions,
  DecodeError,
  type DecodeFunction,
  loadCodecModule,
} from '../../src/projection/codec.js';
import { compileCodec } from '../../src/projection/codecs.js';
import { JsonBytes } from '../../src/projection/json-bytes.js';
import { parseKeyring } from '../../src/projection/keyring.js';

const folder = mkdtempSync(join(tmpdir(), 'codec-'));
test.after.always(() => rmSync(folder, { recursive: true }));
const keyring = parseKeyring(JSON.stringify({ k1: Buffer.alloc(32).toString('base64') }));
const options = (decode?: DecodeFunction): CodecOptions => ({
  keyring,
  legacy: false,
  decrypt: 'native',
  reportMismatch: () => {},
  decode,
});

function decoded(codec: Codec, decode: DecodeFunction, stored: string, keyId: string | null = 'k1'): unknown {
  const rows = { table: 'people', columns: [{ name: 'name', at: 0 }], others: new Map([['key_id', 1]]) };
  const decoder = compileCodec(codec, options(decode), rows);
  decoder.startRow(Row.of([stored, keyId]), 'w', '7');
  const json = new JsonBytes(1);
  try {
    decoder.writeCell(0, json);
    return JSON.parse(json.toString());
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
  t.is(decoded(hex, decode, 'xk1:4a4b'), 'a "text" \u2028');
  t.is(
    decoded({ cipher: 'module', encoding: 'text', keyId: { column: 'key_id' } }, decode, 'as it is', 'k9'),
    'a "text" \u2028',
  );
  t.deepEqual(
    seen.map(([stored]) => stored),
    [Buffer.from('JK'), 'as it is'],
  );
  const { keys, ...cell } = (seen[0] as [unknown, CellContext])[1];
  t.deepEqual(cell, { workspace: 'w', table: 'people', column: 'name', id: '7', keyId: 'k1' });
  t.is(keys.get('k1'), keyring.get('k1'));
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
    const error = decoded(hex, decode, 'xk1:4a') as DecodeError;
    t.is(error.reason, 'module', name);
    t.false(`${error.stack} ${JSON.stringify(error)} ${error.cause}`.includes('secret'));
  }
  t.is((decoded(hex, () => '', 'xk1:4z') as DecodeError).reason, 'bad_format');
  t.is((decoded(hex, () => '', 'k1:4a') as DecodeError).reason, 'bad_format');
});

test('a codec of cipher module is refused without a module', (t) => {
  t.throws(() => compileCodec(hex, options(), { table: 'people', columns: [] }), {
    message: /CODEC_MODULE is not set/,
  });
});

test('the example of docs/keys.md decodes what node:crypto sealed', async (t) => {
  const guide = readFileSync(join(projectRoot, 'docs/keys.md'), 'utf8');
  const path = join(folder, 'example.mjs');
  writeFileSync(path, /```js\n([\s\S]*?)```/.exec(guide)?.[1] ?? '');
  const decode = (await loadCodecModule(path)) as DecodeFunction;
  const iv = randomBytes(12);
  const cipher = createCipheriv('aes-256-gcm', Buffer.alloc(32), iv);
  const data = Buffer.concat([cipher.update('Jansen é'), cipher.final()]);
  const parts = [iv, cipher.getAuthTag(), data].map((part) => part.toString('hex'));
  const own: Codec = { cipher: 'module', encoding: 'text', keyId: 'k1' };
  t.is(decoded(own, decode, parts.join(':')), 'Jansen é');
  t.is((decoded(own, decode, parts.toReversed().join(':')) as DecodeError).reason, 'module');
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
