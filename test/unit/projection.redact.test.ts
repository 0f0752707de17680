import test from 'ava';
import fc from 'fast-check';
import { codecPresets } from '../../src/definition/load.js';
import type { Codec } from '../../src/projection/codec.js';
import { compileRedaction } from '../../src/projection/redact.js';
import { redactedText } from '../support/redacted.js';

const fields = {
  klant: ['id', 'status', 'updated_at'],
  gebruiker: ['rol'],
  installatie: ['naam', 'merk', 'locatie', 'vulling_kg', 'koudemiddelGwp', 'klant_id', 'interne_notities'],
  werkbon: ['nummer', 'datum', 'status', 'omschrijving', 'ondertekend_op'],
};
const codecs = [codecPresets()['aes-256-gcm'] as Codec];
const redactDiff = redactedText(compileRedaction(fields, codecs));

const change = (veld: string, oud: string, nieuw: string): string =>
  `{"oud": ${oud}, "veld": ${JSON.stringify(veld)}, "nieuw": ${nieuw}}`;
const shown = (veld: string, oud: string, nieuw: string): string =>
  `{"veld":${JSON.stringify(veld)},"oud":${oud},"nieuw":${nieuw}}`;
const shielded = (veld: string): string => `{"veld":${JSON.stringify(veld)},"afgeschermd":true}`;
const redacted = (entity: string, veld: string, oud: string, nieuw = '1'): string =>
  redactDiff(entity, `[${change(veld, oud, nieuw)}]`).slice(1, -1);
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
  for (const veld of [
    'vulling_kg',
    'vullingKg',
    'VULLING_KG',
    'vulling-kg',
    '/vullingKg',
    'koudemiddel_gwp',
    'klantId',
  ])
    t.is(redacted('installatie', veld, '"a"'), shown(veld, '"a"', '1'));
});

test('every field that is not listed is shielded, paths and parts of listed ones too', (t) => {
  const unlisted = [
    'contactgegevens',
    'naw',
    'gsm',
    'relatie',
    'notities',
    'adres.straat',
    '/adres/straat',
    'merk.naam',
  ];
  unlisted.push(
    'naam/0',
    'naam[0]',
    'handelingen/0/naam',
    'contacten[2].gsm',
    'gegevens',
    'klant_naam',
    'e-mail',
    '_rev',
  );
  for (const entity of [...Object.keys(fields), '', 'factuur', 'Werkbon', 'constructor', '__proto__'])
    for (const veld of unlisted) t.is(redacted(entity, veld, '"GEHEIM"'), shielded(veld), `${entity} ${veld}`);
  for (const entity of ['', 'factuur', 'Werkbon', 'constructor'])
    t.is(redacted(entity, 'status', '1'), shielded('status'));
});

test('a name of personal data or of a signature is shielded although it is listed', (t) => {
  const names = [
    'klant_naam',
    'klantNaam',
    'klant',
    'email',
    'telefoonnummer',
    'KVKNummer',
    'factuurAdres',
    'postcode',
  ];
  names.push(
    'ondertekendDoor',
    'contactpersoon',
    'btw_nummer',
    'plaats',
    'handtekening',
    'customerSignature',
    'paraaf',
  );
  const listed = { werkbon: [...names, 'plaatsing', 'contactorType', 'klantId'] };
  const everything = redactedText(compileRedaction(listed, codecs));
  const value = (veld: string) => JSON.parse(everything('werkbon', `[${change(veld, '"a"', '1')}]`))[0];
  for (const veld of names) t.deepEqual(Object.keys(value(veld)), ['veld', 'afgeschermd'], veld);
  for (const veld of ['plaatsing', 'contactorType', 'klantId']) t.deepEqual(value(veld), { veld, oud: 'a', nieuw: 1 });
});

test('a value in place of a field name is not shown', (t) => {
  const values = [
    'jansen@bakkerij.nl',
    'Jansen',
    'Jan de Vries',
    'JanDeVries',
    '06-12345678',
    '0612345678',
    '1234AB',
    '',
  ];
  values.push(
    'tel.0612345678',
    'kvk12345678',
    'tel/061/234/567',
    'naam: Jansen',
    'naam=Jansen',
    'NL91ABNA0417164300',
    '*',
  );
  values.push(
    'enc:v2:k1:AAAA',
    JSON.parse(png),
    'a'.repeat(41),
    `${'a.'.repeat(9)}a`,
    'straat\n',
    '{"naam":"Jansen"}',
    'é',
  );
  for (const veld of values) t.is(redacted('werkbon', veld, '1'), shielded('(afgeschermd)'), veld);
});

test('an object or a list is shielded under a listed name', (t) => {
  for (const value of [
    '{}',
    '[]',
    '{"a": 1}',
    '["Jansen"]',
    '[{"e_mail": "a@b.nl"}]',
    `{"druk": 4.20, "foto": ${png}}`,
  ]) {
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
  for (const text of [
    'in_uitvoering',
    '2021-05-10T14:03:12.120Z',
    'Storing "hoge druk"\nkamer 7',
    'Dak "noord"\\12',
    '',
  ])
    t.is(
      redacted('werkbon', 'omschrijving', JSON.stringify(text)),
      shown('omschrijving', JSON.stringify(text), '1'),
      text,
    );
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
