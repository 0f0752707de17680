import test from 'ava';
import fc from 'fast-check';
import { makeRedaction } from '../../src/resource/compiled.js';
import { type FieldType, getType } from '../../src/resource/definition/field-types.js';
import { composeDiff, type DiffShape, readStoredChanges } from '../../src/resource/projection/audit-diff.js';
import { compileRedaction, type LoggedForm } from '../../src/resource/projection/redact.js';
import { altered, field, items, load, owners } from '../support/definitions.js';
import { appDiff, redactedText } from '../support/redacted.js';

const isScalar: LoggedForm = (json) => !/^[{[]/.test(json);
const listed = (names: readonly string[]) => new Map(names.map((name) => [name, isScalar] as const));
const fields = {
  klant: listed(['id', 'status', 'updated_at']),
  gebruiker: listed(['rol']),
  installatie: listed(['naam', 'merk', 'locatie', 'vulling_kg', 'koudemiddelGwp', 'klant_id', 'interne_notities']),
  werkbon: listed(['nummer', 'datum', 'status', 'omschrijving', 'ondertekend_op']),
};
const named = ['klant_naam', 'e_mail', 'adres.straat', 'gegevens', 'handtekening'];
const redactDiff = redactedText(compileRedaction(fields, named));

const change = (veld: string, oud: string, nieuw: string): string =>
  `{"oud": ${oud}, "veld": ${JSON.stringify(veld)}, "nieuw": ${nieuw}}`;
const shown = (veld: string, oud: string, nieuw: string): string =>
  `{"veld":${JSON.stringify(veld)},"oud":${oud},"nieuw":${nieuw}}`;
const shielded = (veld: string): string => `{"veld":${JSON.stringify(veld)},"afgeschermd":true}`;
const redacted = (entity: string, veld: string, oud: string, nieuw = '1'): string =>
  redactDiff(entity, `[${change(veld, oud, nieuw)}]`).slice(1, -1);
const words = (text: string): string[] => text.trim().split(/\s+/);

test('a change is shown as veld, oud, nieuw, and numbers keep every digit', (t) => {
  const stored = `[${change('status', '"gepland"', '"afgerond"')}, ${change('nummer', '12.50', '12345678901234567890')}]`;
  t.is(
    redactDiff('werkbon', stored),
    `[${shown('status', '"gepland"', '"afgerond"')},${shown('nummer', '12.50', '12345678901234567890')}]`,
  );
  t.is(redactDiff('installatie', '[]'), '[]');
  t.is(redactDiff('installatie', '[{"veld": "merk"}]'), `[${shown('merk', 'null', 'null')}]`);
});

test('listed fields are shown in each spelling of their names', (t) => {
  for (const veld of words('vulling_kg vullingKg VULLING_KG vulling-kg /vullingKg koudemiddel_gwp klantId'))
    t.is(redacted('installatie', veld, '"a"'), shown(veld, '"a"', '1'));
});

test('every field that is not listed is shielded with its name, paths and parts of listed ones too', (t) => {
  const unlisted = words(
    `contactgegevens naw gsm relatie notities adres.huisnummer merk.naam naam/0 naam[0] handelingen/0/naam
    contacten[2].gsm _rev jan.jansen jansen dorpsstraat`,
  );
  const entities = [...Object.keys(fields), '', 'factuur', 'Werkbon', 'constructor', '__proto__'];
  for (const entity of entities)
    for (const veld of unlisted)
      t.is(redacted(entity, veld, '"GEHEIM"'), shielded('(afgeschermd)'), `${entity} ${veld}`);
  for (const entity of ['', 'factuur', 'Werkbon', 'constructor'])
    t.is(redacted(entity, 'status', '1'), shielded('status'));
});

test('of fields that are listed by name alone the name is shown, in each of its spellings', (t) => {
  for (const veld of words('klant_naam klantNaam e-mail email adres.straat /adres.straat gegevens handtekening'))
    for (const entity of ['werkbon', 'factuur', ''])
      t.is(redacted(entity, veld, '"GEHEIM"'), shielded(veld), `${entity} ${veld}`);
  t.is(redacted('werkbon', `e${'-'.repeat(200)}mail`, '1'), shielded('(afgeschermd)'));
});

const moment = '"2021-05-10T14:03:12.120Z"';
/** The log has them so, by the type of the field; a text is shown in none. */
const forms: Readonly<Partial<Record<FieldType, readonly [shown: string[], shielded: string[]]>>> = {
  number: [
    ['12.50', '-3', '12345678901234567890', '"12.50"', '1e3'],
    ['"06-12345678"', '"0612345678"', '"12,5"', 'true'],
  ],
  integer: [
    ['2019', '"2019"'],
    ['"1234-56-782"', '"2019 Jansen"', '""'],
  ],
  boolean: [
    ['true', 'false'],
    ['"ja"', '1'],
  ],
  date: [
    ['"2026-01-31"', moment],
    ['"31 januari, Jansen"', '"2026-01-31 Jansen"'],
  ],
  timestamp: [
    [moment, '"2026-03-29 01:59:59.123456+00"', '"2026-01-31T09:00"'],
    ['"gisteren"', '"2026"', '20260131'],
  ],
  uuid: [
    ['"5f0d7c1e-8a43-4c52-9b1d-3f6e2a9c7d10"', '"5F0D7C1E-8A43-4C52-9B1D-3F6E2A9C7D10"'],
    ['"Jansen"', '5'],
  ],
  bigint: [
    ['1042', '"1042"'],
    ['"Jansen"', '"1042 AB"', '1.5'],
  ],
  text: [[], ['"Jansen"', '612345678', 'true']],
  json: [[], ['1', '"x"']],
};

test('a value is shown if it has the form of its field, whatever a text in its place looks like', (t) => {
  for (const [type, [shown, hidden]] of Object.entries(forms)) {
    const form = getType(type as FieldType).isLogged ?? (() => false);
    t.deepEqual(shown.filter(form), shown, type);
    t.deepEqual(hidden.filter(form), [], type);
  }
});

test('a definition shows texts in the log by "log" alone, states by the enum of their schema, and no personal data', (t) => {
  const definition = altered(items, 'fields', {
    ...items.fields,
    note: field('note', 'text'),
    brand: field('brand', 'text', { log: 'text' }),
    phase: field('phase', 'text', { values: ['open', 'done'] }),
    stage: field('stage', 'text', { schema: { enum: ['open', 'done'] } }),
    born: field('born', 'date', { personal: true }),
    seen: field('seen', 'date'),
    kind: field('kind', 'enum'),
  });
  const redact = redactedText(makeRedaction(load({ 'a.json': definition, 'b.json': owners })));
  const isShown = (name: string, value: unknown): boolean => {
    const both = [
      [null, value],
      [value, null],
      [value, value],
    ].map(([oud, nieuw]) => ({ veld: name, oud, nieuw }));
    return both.some((one) => redact('Item', JSON.stringify([one])).includes('"nieuw"'));
  };
  const image = `data:image/png;base64,${'A'.repeat(300)}`;
  const shownOnes = [
    ['brand', 'Bitzer'],
    ['brand', 5],
    ['phase', 'done'],
    ['seen', '2026-01-31'],
    ['kind', 'open'],
    ['size', 1.5],
  ];
  const hidden = [
    ['note', 'x'],
    ['note', 5],
    ['phase', 'Jansen'],
    ['born', '1980-01-31'],
    ['brand', image],
    ['brand', { a: 1 }],
    ['data', 1],
  ];
  for (const [name, value] of shownOnes) t.true(isShown(name as string, value), `${name} ${value}`);
  for (const [name, value] of hidden) t.false(isShown(name as string, value), `${name} ${value}`);
  t.regex(redact('Item', '[{"veld":"note","oud":null,"nieuw":null}]'), /"oud":null,"nieuw":null/);
});

test('a value in place of a field name is not shown', (t) => {
  const values = [
    ...words(
      `jansen@bakkerij.nl Jansen JanDeVries 06-12345678 0612345678 1234AB tel.0612345678 kvk12345678 tel/061/234/567
      naam=Jansen NL91ABNA0417164300 * {"naam":"Jansen"} é jan.jansen jansen`,
    ),
    ...['', 'Jan de Vries', 'naam: Jansen', 'a'.repeat(41), `${'a.'.repeat(9)}a`, 'straat\n'],
  ];
  for (const veld of values) t.is(redacted('werkbon', veld, '1'), shielded('(afgeschermd)'), veld);
});

test('members of a stored change other than the three are dropped', (t) => {
  const stored = '[{"ip": "10.0.0.1", "oud": 1, "veld": "status", "extra": {"veld": "naam"}, "nieuw": 2}]';
  t.is(redactDiff('werkbon', stored), `[${shown('status', '1', '2')}]`);
});

test('an element that is not a change is left out and a diff that is not a list is empty', (t) => {
  const broken = ['null', '{}', '"x"', '7', '', '[', '[1', '[{]', '[{"veld": "a"', '[{"veld": "a"}] x', '[,]'];
  broken.push(String.raw`[{"veld": "a", "oud": "\u00zz"}, {"veld": "\u00zz"}]`);
  for (const json of broken) t.is(redactDiff('werkbon', json), '[]', json);
  const stored = `[1, "GEHEIM", null, [${change('a', '1', '2')}], {"oud": "GEHEIM"}, {"veld": 7, "oud": "GEHEIM"}, ${change('status', '1', '2')}]`;
  t.is(redactDiff('werkbon', stored), `[${shown('status', '1', '2')}]`);
});

test('every answer is a list of changes in the shape of the API', (t) => {
  const value = fc.oneof(
    fc.json(),
    fc.string().map((text) => JSON.stringify(text)),
  );
  const veld = fc.oneof(fc.string(), fc.constantFrom('status', 'omschrijving', 'naam'));
  const item = fc.oneof(
    value,
    fc.tuple(veld, value, value).map(([name, oud, nieuw]) => change(name, oud, nieuw)),
  );
  const stored = fc.oneof(
    fc.string(),
    fc.json(),
    fc.array(item).map((items) => `[${items.join(', ')}]`),
  );
  const entity = fc.constantFrom('klant', 'installatie', 'werkbon', 'gebruiker', 'anders');
  fc.assert(
    fc.property(entity, stored, (name, json) => {
      for (const entry of JSON.parse(redactDiff(name, json))) {
        const keys = Object.keys(entry).join();
        t.is(typeof entry.veld, 'string');
        t.true(keys === 'veld,oud,nieuw' || (keys === 'veld,afgeschermd' && entry.afgeschermd === true));
      }
    }),
    { numRuns: 2000 },
  );
});

test('no value below the top of a change, and none under a name that is not listed, leaves the log', (t) => {
  const nested = fc.letrec<{ value: unknown }>((tie) => ({
    value: fc.oneof(fc.constant('GEHEIM'), fc.array(tie('value')), fc.dictionary(fc.string(), tie('value'))),
  })).value;
  const container = nested.filter((value) => typeof value !== 'string');
  const never = (entity: string, veld: string, value: unknown): void => {
    for (const [oud, nieuw] of [
      [value, 1],
      ['x', value],
    ]) {
      const stored = `[${change(veld, JSON.stringify(oud), JSON.stringify(nieuw))}]`;
      t.false(redactDiff(entity, stored).includes('GEHEIM'), stored);
    }
  };
  fc.assert(
    fc.property(fc.string(), nested, container, (name, value, structure) => {
      const isListed = [...fields.werkbon.keys()].includes(name.replace(/^\/|[_-]/g, '').toLowerCase());
      if (!isListed) never('werkbon', name, value);
      never('anders', 'status', value);
      if (JSON.stringify(structure).includes('GEHEIM')) never('werkbon', 'status', structure);
    }),
    { numRuns: 1000 },
  );
});

const changes = [
  { name: 'status', before: null, after: 'done' },
  { name: 'kg', before: 12.5, after: 3 },
];

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

for (const [shape, stored] of shapes) {
  const name = JSON.stringify(shape);
  test(`changes are written and read in the shape ${name}`, (t) => {
    const text = composeDiff(changes, shape);
    t.deepEqual(JSON.parse(text), stored);
    const read = readStoredChanges(text, shape);
    const back = read.map(({ name, old, new: after }) => ({ name, before: JSON.parse(old), after: JSON.parse(after) }));
    t.deepEqual(back, changes);
    t.is(composeDiff([], shape), shape.field === undefined ? '{}' : '[]');
  });

  test(`any changes come back from the shape ${name}`, (t) => {
    const change = fc.record({ name: fc.string(), before: fc.jsonValue(), after: fc.jsonValue() });
    fc.assert(
      fc.property(fc.uniqueArray(change, { selector: (each) => each.name }), (some) => {
        const distinct = some.filter((each) => each.name !== '__proto__');
        const read = readStoredChanges(composeDiff(distinct, shape), shape);
        const sorted = (all: readonly { name: string }[]) => [...all].sort((a, b) => (a.name < b.name ? -1 : 1));
        const wanted = distinct.map((each) => ({
          name: each.name,
          old: JSON.stringify(each.before),
          new: JSON.stringify(each.after),
        }));
        t.deepEqual(sorted(read), sorted(wanted));
      }),
    );
  });
}

test('changes are shown in the words of the definition, and in the usual ones where it has none', (t) => {
  const redaction = compileRedaction({ Order: listed(['status']) }, ['phone']);
  const shown = (diff: string, ...form: Parameters<typeof redaction>) => redaction(...form)('Order', diff);
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
  const redact = redactedText(compileRedaction({ Order: listed(['status']) }, ['phone']));
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

test('the list for entities that are no resource shows no further field of a resource', (t) => {
  const log = { ...owners, auditFieldsOfOthers: { Item: { town: 'text', note: 'text' }, User: { role: 'text' } } };
  // The files are read in the order of their names, and the log can come behind the resource or before it.
  for (const name of ['a.json', 'c.json']) {
    const redacted = redactedText(
      makeRedaction(load({ 'b.json': altered(items, 'fields/state/log', 'text'), [name]: log })),
    );
    const shown = (entity: string, field: string): boolean =>
      redacted(entity, JSON.stringify([{ veld: field, oud: 'a', nieuw: 'b' }])).includes('"nieuw"');
    t.deepEqual([shown('Item', 'town'), shown('Item', 'note'), shown('Item', 'state')], [false, false, true], name);
    t.true(shown('User', 'role'));
  }
});
