import test from 'ava';
import fc from 'fast-check';
import { wordsOf } from '../../src/db/row.js';
import { codecPresets } from '../../src/definition/load.js';
import type { DiffShape } from '../../src/projection/audit-diff.js';
import type { Codec } from '../../src/projection/codec.js';
import { PrintedDiff } from '../../src/projection/printed-diff.js';
import { compileRedaction } from '../../src/projection/redact.js';
import { appDiff, redactedText } from '../support/redacted.js';

const rules = { werkbon: ['status', 'datum', 'omschrijving'], installatie: ['vulling_kg', 'naam'] };
const redact = redactedText(compileRedaction(rules, [codecPresets()['aes-256-gcm'] as Codec]));

/** Whether the text is read in one pass. */
function isPrinted(text: string, shape: DiffShape = appDiff): boolean | undefined {
  const bytes = Buffer.from(`${text}...`);
  return PrintedDiff.of(shape)?.read({ bytes, words: wordsOf(bytes) }, 0, Buffer.byteLength(text));
}

const scalar = fc.oneof(
  fc.constantFrom('null', 'true', 'false', '0', '-1.50', '12345678901234567890', '1e5', '01', '1.', 'nul', '{}', '[1]'),
  fc
    .constantFrom('gepland', 'enc:v2:k1:AA==', 'eyJhIjoxfQ==', 'a\nb', 'zegt "ja"', '{"a": 1}', 'Café, 12,5 kg')
    .map((value) => JSON.stringify(value)),
  fc.string({ maxLength: 40 }).map((value) => JSON.stringify(value)),
  fc.constantFrom('"\\u0061"', '"\\x"', '"\\\\"', '"\\""'),
);
const name = fc.oneof(
  fc.constantFrom('status', 'datum', 'omschrijving', 'vulling_kg', 'naam', 'telefoon', 'Jan de Boer', 'stat\\u0075s'),
  fc.string({ maxLength: 8 }).map((value) => JSON.stringify(value).slice(1, -1)),
);
const change = fc
  .tuple(name, scalar, scalar)
  .map(([veld, oud, nieuw]) => `{"oud": ${oud}, "veld": "${veld}", "nieuw": ${nieuw}}`);
const diff = fc.array(change, { maxLength: 4 }).map((changes) => `[${changes.join(', ')}]`);
/** The same with a character taken out or put in. */
const damaged = fc
  .tuple(diff, fc.nat(), fc.constantFrom('', '"', '\\', ' ', ',', '}', ']', 'x'))
  .map(([text, at, by]) => `${text.slice(0, at % text.length)}${by}${text.slice((at % text.length) + 1)}`);

test('an entry is shown the same whether its diff is read in one pass or by the general reader', (t) => {
  // A blank in front makes it a text that jsonb does not print.
  fc.assert(
    fc.property(fc.constantFrom('werkbon', 'installatie', 'klant'), fc.oneof(diff, damaged), (entity, text) => {
      t.false(isPrinted(` ${text}`));
      t.is(redact(entity, text), redact(entity, ` ${text}`), text);
    }),
    { numRuns: 5000 },
  );
});

test('the diffs that jsonb prints are read in one pass, by the names of any shape', (t) => {
  for (const text of [
    '[]',
    '[{"oud": "gepland", "veld": "status", "nieuw": "afgerond"}]',
    '[{"oud": null, "veld": "vulling_kg", "nieuw": -12.50}, {"oud": false, "veld": "naam", "nieuw": "a \\" b"}]',
  ])
    t.true(isPrinted(text), text);
  const english = { field: 'name', old: 'before', new: 'after' };
  t.true(isPrinted('[{"name": "a", "after": 1, "before": 2}]', english));
  t.is(isPrinted('{"a": [1, 2]}', { old: 0, new: 1 }), undefined);
});

test('any other diff is left to the general reader', (t) => {
  const whole = '{"oud": 1, "veld": "a", "nieuw": 2}';
  for (const text of [
    '',
    '[',
    `[${whole}`,
    `[${whole}] `,
    `[${whole},${whole}]`,
    '[{"veld": "a", "oud": 1, "nieuw": 2}]',
    '[{"oud": 1, "veld": "a", "nieuw": {}}]',
    '[{"oud": 1, "veld": 3, "nieuw": 2}]',
    '[{"oud": 01, "veld": "a", "nieuw": 2}]',
    '[{"oud": 1e3, "veld": "a", "nieuw": 2}]',
    '[{"oud": 1, "veld": "a\\u0062", "nieuw": 2}]',
    '[{"oud": 1, "veld": "a", "nieuw": 2, "reden": 3}]',
    `[${Array(17).fill(whole).join(', ')}]`,
  ])
    t.false(isPrinted(text), text);
});
