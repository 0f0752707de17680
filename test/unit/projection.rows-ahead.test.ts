import { createCipheriv, type KeyObject, randomBytes } from 'node:crypto';
import test from 'ava';
import fc from 'fast-check';
import { Row, type TextRow } from '../../src/postgres/row.js';
import { codecPresets } from '../../src/resource/definition/load.js';
import { type Codec, type CodecOptions, DecodeError, type RowDecoder } from '../../src/resource/projection/codec.js';
import { compileCodec } from '../../src/resource/projection/codecs.js';
import { JsonBytes } from '../../src/resource/projection/json-bytes.js';
import { parseKeyring } from '../../src/resource/projection/keyring.js';
import { messageOf, rowMessage } from '../support/row-message.js';

const keyIds = ['k1', 'k2'];
const keyring = parseKeyring(
  JSON.stringify(Object.fromEntries(keyIds.map((id) => [id, randomBytes(32).toString('base64')]))),
);
const columns = ['naam', 'straat'].map((name, at) => ({ name, at }));
const mismatches: string[] = [];
const options: CodecOptions = {
  keyring,
  legacy: true,
  decrypt: 'batched',
  reportMismatch: ({ row }) => mismatches.push(row),
};
const presets = codecPresets();
const decoder = (): RowDecoder => compileCodec(presets['aes-256-gcm'] as Codec, options, { table: 'klanten', columns });

function sealed(text: string, keyId: string, aad: string | null): string {
  const iv = randomBytes(12);
  const cipher = createCipheriv('aes-256-gcm', keyring.get(keyId) as KeyObject, iv);
  if (aad !== null) cipher.setAAD(Buffer.from(aad));
  const bytes = Buffer.concat([iv, cipher.update(text), cipher.final(), cipher.getAuthTag()]);
  return `enc:${aad === null ? 'v1' : 'v2'}:${keyId}:${bytes.toString('base64')}`;
}

function decoded(from: RowDecoder, row: Row, workspace: string): (string | null)[] {
  from.startRow(row, workspace, row.text(columns.length) as string);
  return columns.map(({ at }) => {
    const json = new JsonBytes(16);
    try {
      if (row.isNull(at)) return null;
      from.writeCell(at, json);
      return json.toString();
    } catch (error) {
      if (error instanceof DecodeError) return error.reason;
      throw error;
    }
  });
}

/** Texts of few lengths, so that rows of different pieces end at the same places; values without AAD, whose tag fits in any row. */
const cell = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      text: fc.constantFrom('a', 'b', 'c', 'é', 'x'.repeat(1100)),
      keyId: fc.constantFrom(...keyIds),
      isLegacy: fc.boolean(),
      isDamaged: fc.constant(false),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      text: fc.constant('a'),
      keyId: fc.constantFrom('k1', 'other'),
      isLegacy: fc.boolean(),
      isDamaged: fc.constant(true),
    }),
  },
  { weight: 1, arbitrary: fc.constant(null) },
);
const stored = fc.record({
  cells: fc.tuple(cell, cell),
  id: fc.constantFrom('1', '2', '3'),
  times: fc.constantFrom(1, 1, 1, 0, 2),
});
const piece = fc.record({
  rows: fc.array(stored, { minLength: 1, maxLength: 20 }),
  workspace: fc.constantFrom('w', 'v'),
  tail: fc.constantFrom('', 'message', 'cut row'),
});

test('rows that arrive together decode as each does alone, read in part, again, and from a buffer that is used again', (t) => {
  fc.assert(
    fc.property(fc.array(piece, { minLength: 1, maxLength: 4 }), (pieces) => {
      const together = decoder();
      const row = new Row();
      const buffer = Buffer.alloc(200_000);
      for (const { rows, workspace, tail } of pieces) {
        const texts = rows.map(({ cells, id }): TextRow => {
          const values = cells.map((each, at) => {
            if (each === null) return null;
            const aad = each.isLegacy ? null : `${workspace}|klanten|${columns[at]?.name}|${id}`;
            const value = sealed(each.text, each.keyId === 'other' ? 'k1' : each.keyId, aad);
            if (each.keyId === 'other') return value.replace(':k1:', ':other:');
            return each.isDamaged ? value.slice(0, -1) : value;
          });
          return [...values, id];
        });
        const ends = {
          '': Buffer.alloc(0),
          message: messageOf('C', Buffer.alloc(3)),
          'cut row': rowMessage(['a', 'b', '1']).subarray(0, 9),
        };
        const messages = texts.map(rowMessage);
        const length = Buffer.concat([...messages, ends[tail as keyof typeof ends]]).copy(buffer);
        row.startPiece(buffer.subarray(0, length));
        let at = 0;
        for (const [i, { times }] of rows.entries()) {
          row.read(at);
          at += messages[i]?.length as number;
          const alone = decoded(decoder(), Row.of(texts[i] as TextRow), workspace);
          for (let time = 0; time < times; time++) t.deepEqual(decoded(together, row, workspace), alone);
        }
        buffer.fill(0xff);
      }
      t.deepEqual(mismatches, []);
    }),
    { numRuns: 60 },
  );
});

test('a row read ahead is forgotten when other bytes take its place', (t) => {
  const together = decoder();
  const row = new Row();
  const read = (names: readonly string[], at: number): (string | null)[] => {
    const messages = names.map((name) => rowMessage([sealed(name, 'k1', null), null, '1']));
    row.startPiece(Buffer.concat(messages));
    row.read(at * (messages[0]?.length as number));
    return decoded(together, row, 'w');
  };
  t.deepEqual(read(['a', 'b', 'c'], 0), ['"a"', null]);
  t.deepEqual(read(['d', 'e', 'f'], 1), ['"e"', null]);
});
