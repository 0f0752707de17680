import test from 'ava';
import fc from 'fast-check';
import { redactionOf } from '../../src/resource/definition/compiled.js';
import { codecPresets } from '../../src/resource/definition/load.js';
import { type DiffShape, diffOf, storedChanges } from '../../src/resource/projection/audit-diff.js';
import type { Codec } from '../../src/resource/projection/codec.js';
import { looksPersonal } from '../../src/resource/projection/personal-texts.js';
import { compileRedaction } from '../../src/resource/projection/redact.js';
import { items, load, owners } from '../support/definitions.js';
import { limitMs } from '../support/patience.js';
import { appDiff, redactedText } from '../support/redacted.js';

const fields = {
  klant: ['id', 'status', 'updated_at'],
  gebruiker: ['rol'],
  installatie: ['naam', 'merk', 'locatie', 'vulling_kg', 'koudemiddelGwp', 'klant_id', 'interne_notities'],
  werkbon: ['nummer', 'datum', 'status', 'omschrijving', 'ondertekend_op'],
};
const codecs = [codecPresets()['aes-256-gcm'] as Codec];
const named = ['klant_naam', 'e_mail', 'adres.straat', 'gegevens', 'handtekening'];
const redactDiff = redactedText(compileRedaction(fields, codecs, named));

const change = (veld: string, oud: string, nieuw: string): string =>
  `{"oud": ${oud}, "veld": ${JSON.stringify(veld)}, "nieuw": ${nieuw}}`;
const shown = (veld: string, oud: string, nieuw: string): string =>
  `{"veld":${JSON.stringify(veld)},"oud":${oud},"nieuw":${nieuw}}`;
const shielded = (veld: string): string => `{"veld":${JSON.stringify(veld)},"afgeschermd":true}`;
const redacted = (entity: string, veld: string, oud: string, nieuw = '1'): string =>
  redactDiff(entity, `[${change(veld, oud, nieuw)}]`).slice(1, -1);
const words = (text: string): string[] => text.trim().split(/\s+/);
const png = '"iVBORw0KGgoAAAANSUhEUgAAASwAAACWCAYAAABkW7XSAAAA"';

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

const texts = (list: string): string[] => list.trim().split(/;\s+/);
const personal = texts(`
  jan@bakkerij.nl; mail naar jan.jansen+x@mail.example.co; "jan jansen"@example.nl; jan＠bakkerij.nl; jan @ bakkerij; jan%40bakkerij.nl;
  jan(at)bakkerij.nl; jan [at] bakkerij.nl; jan at bakkerij dot nl;
  06-12345678; bel 0612345678 na 5; (020) 123 45 67; +31 6 1234 5678; 0031612345678; +49.30.123456; 020 - 1234567; ０６１２３４５６７８;
  06\u201312345678; 06_1234_5678; 06\u00a012\u202f34 56 78; 06 \u2022 12345678; 06|12345678; \u0660\u0666\u0661\u0662; 31612345678;
  31 6 12345678; 1-555-123-4567; (555) 123-4567; bel 612345678; telefoonnr: 612345678; tel. 123 456;
  NL91ABNA0417164300; op rek. NL91 ABNA 0417 1643 00.; nl91abna0417164300; BE68 5390 0754 7034; NL 91 ABNA 0417 1643 00;
  NL91.ABNA.0417.1643.00; IBANNL91ABNA0417164300; NL91\u00a0ABNA\u00a00417\u00a01643\u00a000;
  111222333; bsn 123456789; 111 222 333; 111.222.333; BSN: 1112223; 1112.22.333; 11 12 22 333; nr.111222333; bsn111222333; 111\u200b222333;
  1234 AB; 1234AB Utrecht; 1234ab; 1234-AB; 1234\u00a0AB; Dorpsstraat 12; sleutel op Lange Dijk 3a; kerkstraat, 7; Postbus 123; P.O. Box 12;
  12 Main Street; Hauptstraße 5; Laan van Meerdervoort 100; Avenue Louise 54; Dorpsstraat: 12-3; Dorpsstraat\n12; huisnr. 7;
  Nieuwezijds Voorburgwal 12; Dorpsstraat huisnummer 12`);
const impersonal = texts(`
  Koelcel 3; Filter 12 vervangen; BI10240001; WB-2026-000123; ZB29KCE; R1234YF; R-1234yf; R-1234ze; 1500kg; vulling 12.50 kg van 1500 kg;
  2021-05-10T14:03:12.120Z; 2026-03-29 01:59:59.123456+00; op 24 juni 2024; 01-02-2024 10:00; 01-02-2024 1 stuk; 08:00 - 17:00;
  0.0000000001234; 32 33 34 35 36 37; 10.0.0.1; 24 bar, 6 K; 111222334; 12345678901234567890; 5f0d7c1e-8a43-4c52-9b1d-3f6e2a9c7d10;
  00000000-0000-4000-8000-000000000001; Storing "hoge druk" kamer 7; Sleutel bij buren (nr. 14); Straatnaam onbekend; onderweg 2 uur;
  via Daikin 3`);

test('a text in the form of an e-mail address, telephone number, IBAN, BSN or address is shielded', (t) => {
  for (const text of personal)
    for (const stored of [text, `Klant belde: ${text}`, `${text} (nieuw)`])
      t.is(redacted('werkbon', 'omschrijving', JSON.stringify(stored)), shielded('omschrijving'), stored);
});

test('a long text is judged in time that grows with its length', (t) => {
  const began = performance.now();
  const pieces = [
    'a',
    '1 ',
    'ab12',
    'x. ',
    '0 ',
    '((',
    'tel ',
    'bsn ',
    '@ ',
    '1234 ',
    'Straat ',
    '111 222 333 ',
    '1 Aa ',
  ];
  for (const piece of pieces) looksPersonal(`${piece.repeat(100_000)}1`);
  t.true(performance.now() - began < limitMs(5000));
});

test('numbers, dates, codes and prose are not taken for personal data', (t) => {
  for (const text of impersonal) {
    const stored = JSON.stringify(text);
    t.is(redacted('werkbon', 'omschrijving', stored), shown('omschrijving', stored, '1'), text);
  }
});

test('a name of personal data or of a signature is shielded although it is listed', (t) => {
  const names = words(
    `klant_naam klantNaam klant email telefoonnummer KVKNummer factuurAdres postcode ondertekendDoor contactpersoon
    btw_nummer plaats handtekening customerSignature paraaf`,
  );
  const listed = { werkbon: [...names, 'plaatsing', 'contactorType', 'klantId'] };
  const everything = redactedText(compileRedaction(listed, codecs));
  const value = (veld: string) => JSON.parse(everything('werkbon', `[${change(veld, '"a"', '1')}]`))[0];
  for (const veld of names) t.deepEqual(Object.keys(value(veld)), ['veld', 'afgeschermd'], veld);
  for (const veld of ['plaatsing', 'contactorType', 'klantId']) t.deepEqual(value(veld), { veld, oud: 'a', nieuw: 1 });
});

test('a value in place of a field name is not shown', (t) => {
  const values = [
    ...words(
      `jansen@bakkerij.nl Jansen JanDeVries 06-12345678 0612345678 1234AB tel.0612345678 kvk12345678 tel/061/234/567
      naam=Jansen NL91ABNA0417164300 * enc:v2:k1:AAAA {"naam":"Jansen"} é jan.jansen jansen`,
    ),
    ...['', 'Jan de Vries', 'naam: Jansen', JSON.parse(png), 'a'.repeat(41), `${'a.'.repeat(9)}a`, 'straat\n'],
  ];
  for (const veld of values) t.is(redacted('werkbon', veld, '1'), shielded('(afgeschermd)'), veld);
});

test('an object or a list is shielded under a listed name', (t) => {
  const photo = `{"druk": 4.20, "foto": ${png}}`;
  for (const value of ['{}', '[]', '{"a": 1}', '["Jansen"]', '[{"e_mail": "a@b.nl"}]', photo]) {
    t.is(redacted('installatie', 'naam', value), shielded('naam'));
    t.is(redacted('installatie', 'naam', '1', value), shielded('naam'));
  }
});

test('a string that is encrypted or holds an image is shielded under a listed name', (t) => {
  for (const value of ['"enc:v2:k1:AAAA"', '"was ENC:v1:k1:AAAA"', String.raw`"\u0065nc:v2:k1:AAAA"`, png])
    t.is(redacted('werkbon', 'omschrijving', value), shielded('omschrijving'), value);
});

test('a string that looks like structured data is shielded under a listed name, prose is shown', (t) => {
  for (const text of ['{"naam": "Jansen"}', ' ["Jansen"]', JSON.stringify('{"naam": "Jansen"}'), 'naam=Jansen&gsm=06'])
    t.is(redacted('werkbon', 'omschrijving', JSON.stringify(text)), shielded('omschrijving'), text);
  const prose = ['in_uitvoering', '2021-05-10T14:03:12.120Z', 'Storing "hoge druk"\nkamer 7', 'Dak "noord"\\12', ''];
  for (const text of prose.map((each) => JSON.stringify(each)))
    t.is(redacted('werkbon', 'omschrijving', text), shown('omschrijving', text, '1'), text);
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
  const encoded = fc.tuple(container, fc.constantFrom(0, 1, 2, 3), fc.constantFrom('', ' ', '\n', 'was ')).map(
    // A list or an object as text, encoded as a JSON string once more and again, behind something else.
    ([value, times, before]) =>
      Array.from({ length: times }).reduce<unknown>((text) => before + JSON.stringify(text), value),
  );
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
    fc.property(fc.string(), nested, encoded, (name, value, structure) => {
      const isListed = fields.werkbon.includes(name.replace(/^\/|[_-]/g, '').toLowerCase());
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
    const text = diffOf(changes, shape);
    t.deepEqual(JSON.parse(text), stored);
    const read = storedChanges(text, shape);
    const back = read.map(({ name, old, new: after }) => ({ name, before: JSON.parse(old), after: JSON.parse(after) }));
    t.deepEqual(back, changes);
    t.is(diffOf([], shape), shape.field === undefined ? '{}' : '[]');
  });

  test(`any changes come back from the shape ${name}`, (t) => {
    const change = fc.record({ name: fc.string(), before: fc.jsonValue(), after: fc.jsonValue() });
    fc.assert(
      fc.property(fc.uniqueArray(change, { selector: (each) => each.name }), (some) => {
        const distinct = some.filter((each) => each.name !== '__proto__');
        const read = storedChanges(diffOf(distinct, shape), shape);
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
  const redaction = compileRedaction({ Order: ['status'] }, [], ['phone']);
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
  const redact = redactedText(compileRedaction({ Order: ['status'] }, [], ['phone']));
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
  const log = { ...owners, auditFieldsOfOthers: { Item: ['town', 'note'], User: ['role'] } };
  // The files are read in the order of their names, and the log can come behind the resource or before it.
  for (const name of ['a.json', 'c.json']) {
    const redacted = redactedText(redactionOf(load({ 'b.json': items, [name]: log })));
    const shown = (entity: string, field: string): boolean =>
      redacted(entity, JSON.stringify([{ veld: field, oud: 'a', nieuw: 'b' }])).includes('"nieuw"');
    t.deepEqual([shown('Item', 'town'), shown('Item', 'note'), shown('Item', 'state')], [false, false, true], name);
    t.true(shown('User', 'role'));
  }
});
