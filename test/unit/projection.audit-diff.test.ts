import test from 'ava';
import fc from 'fast-check';
import { Row } from '../../src/db/row.js';
import { DiffReader, type DiffShape, diffOf } from '../../src/projection/audit-diff.js';
import { JsonBytes } from '../../src/projection/json-bytes.js';
import { compileRedaction } from '../../src/projection/redact.js';
import { appDiff, redactedText } from '../support/redacted.js';

const changes = [
  { name: 'status', before: null, after: 'done' },
  { name: 'kg', before: 12.5, after: 3 },
];

/** Shapes that apps log in, and how each stores the changes above. */
const shapes: readonly (readonly [DiffShape, unknown])[] = [
  [
    appDiff,
    [
      { veld: 'status', oud: null, nieuw: 'done' },
      { veld: 'kg', oud: 12.5, nieuw: 3 },
    ],
  ],
  [
    { old: 0, new: 1 },
    { status: [null, 'done'], kg: [12.5, 3] },
  ],
  [
    { old: 'from', new: 'to' },
    { status: { from: null, to: 'done' }, kg: { from: 12.5, to: 3 } },
  ],
  [
    { field: 0, old: 2, new: 1 },
    [
      ['status', 'done', null],
      ['kg', 3, 12.5],
    ],
  ],
];

/** The changes that the reader finds; values as JSON text. */
function changesOf(diff: string, shape: DiffShape): { name: string; before: string; after: string }[] {
  const changes: { name: string; before: string; after: string }[] = [];
  const bytes = Buffer.from(diff);
  const reader = new DiffReader(shape);
  const textOf = (part: number): string => bytes.toString('utf8', reader.starts[part], reader.ends[part]);
  reader.read(bytes, 0, bytes.length, () => {
    changes.push({ name: JSON.parse(textOf(0)), before: textOf(1), after: textOf(2) });
  });
  return changes;
}

for (const [shape, stored] of shapes) {
  const name = JSON.stringify(shape);
  test(`changes are written and read in the shape ${name}`, (t) => {
    const text = diffOf(changes, shape);
    t.deepEqual(JSON.parse(text), stored);
    const read = changesOf(text, shape).map(({ before, after, ...rest }) => ({
      ...rest,
      before: JSON.parse(before),
      after: JSON.parse(after),
    }));
    t.deepEqual(read, changes);
    t.is(diffOf([], shape), shape.field === undefined ? '{}' : '[]');
  });

  test(`any changes come back from the shape ${name}`, (t) => {
    const change = fc.record({ name: fc.string(), before: fc.jsonValue(), after: fc.jsonValue() });
    fc.assert(
      fc.property(fc.uniqueArray(change, { selector: (each) => each.name }), (some) => {
        const distinct = some.filter((each) => each.name !== '__proto__');
        const read = changesOf(diffOf(distinct, shape), shape);
        const sorted = (all: readonly { name: string }[]) => [...all].sort((a, b) => (a.name < b.name ? -1 : 1));
        const wanted = distinct.map((each) => ({
          name: each.name,
          before: JSON.stringify(each.before),
          after: JSON.stringify(each.after),
        }));
        t.deepEqual(sorted(read), sorted(wanted));
      }),
    );
  });
}

test('changes are shown in the words of the definition, and in the usual ones where it has none', (t) => {
  const redaction = compileRedaction({ Order: ['status'] }, []);
  const shown = (diff: string, ...form: Parameters<typeof redaction>) => {
    const json = new JsonBytes(16);
    redaction(...form)(Row.of(['Order', diff, '"}]']), 0, 1, json);
    return json.toString();
  };
  const diff = '[{"new": 2, "old": 1, "field": "status"}, {"field": "phone"}, {"field": "Jan Jansen"}]';
  t.is(
    shown(diff),
    '[{"field":"status","old":1,"new":2},{"field":"phone","shielded":true},{"field":"(shielded)","shielded":true}]',
  );
  const words = { field: 'champ', old: 'avant', new: 'après', shielded: 'masqué' };
  t.is(
    shown('{"status": [1, 2], "phone": [3, 4], "Jan Jansen": [5, 6]}', { old: 0, new: 1 }, words),
    '[{"champ":"status","avant":1,"après":2},{"champ":"phone","masqué":true},{"champ":"(masqué)","masqué":true}]',
  );
});

test('a stored change of another shape shows no value', (t) => {
  const redact = redactedText(compileRedaction({ Order: ['status'] }, []));
  const pairs = { old: 0, new: 1 };
  t.is(redact('Order', '{"status": ["a", "b"]}', pairs), '[{"veld":"status","oud":"a","nieuw":"b"}]');
  for (const stored of ['{"status": "secret"}', '{"status": {"old": "secret"}}', '{"status": []}'])
    t.is(redact('Order', stored, pairs), '[{"veld":"status","oud":null,"nieuw":null}]', stored);
  for (const stored of ['["secret"]', '"secret"', '1', 'null', '', '{"status": ["a", '])
    t.is(redact('Order', stored, pairs), '[]', stored);
  t.is(
    redact('Order', '{"phone": ["06", "07"], "Jan Jansen": [1, 2]}', pairs),
    '[{"veld":"phone","afgeschermd":true},{"veld":"(afgeschermd)","afgeschermd":true}]',
  );
});
