import test from 'ava';
import fc from 'fast-check';
import { redactDiff } from '../../src/projection/redact.js';

const change = (veld: string, oud: string, nieuw: string): string =>
  `{"oud": ${oud}, "veld": ${JSON.stringify(veld)}, "nieuw": ${nieuw}}`;
const shown = (veld: string, oud: string, nieuw: string): string =>
  `{"veld":${JSON.stringify(veld)},"oud":${oud},"nieuw":${nieuw}}`;
const shielded = (veld: string): string => `{"veld":${JSON.stringify(veld)},"afgeschermd":true}`;
const png = '"iVBORw0KGgoAAAANSUhEUgAAASwAAACWCAYAAABkW7XSAAAA"';

test('a change is shown as veld, oud, nieuw, and numbers keep every digit', (t) => {
  const stored = `[${change('status', '"gepland"', '"afgerond"')}, ${change('vullingKg', '12.50', '12345678901234567890')}]`;
  t.is(
    redactDiff('werkbon', stored),
    `[${shown('status', '"gepland"', '"afgerond"')},${shown('vullingKg', '12.50', '12345678901234567890')}]`,
  );
  t.is(redactDiff('installatie', '[]'), '[]');
  t.is(redactDiff('installatie', '[{"veld": "merk"}]'), `[${shown('merk', 'null', 'null')}]`);
});

test('a change to a customer shows its field and no value, but for its state and times', (t) => {
  for (const veld of [
    'naam',
    'adres.straat',
    '/adres/straat',
    'kvkNummer',
    'kvk_nummer',
    'email',
    'notities',
    'land',
    '*',
    '',
  ]) {
    t.is(redactDiff('klant', `[${change(veld, '"Jansen"', '"Pietersen"')}]`), `[${shielded(veld)}]`);
  }
  for (const veld of ['status', 'updatedAt', 'updated_at', 'version', 'actief']) {
    t.is(redactDiff('klant', `[${change(veld, '1.0', '2')}]`), `[${shown(veld, '1.0', '2')}]`);
  }
});

test('personal data is shielded in the log of other entities too', (t) => {
  const personal = [
    'klant_naam',
    'klantNaam',
    'klant.naam',
    'klant',
    'email',
    'e-mail',
    'telefoonnummer',
    'KVKNummer',
    'kvk',
  ];
  personal.push(
    'factuurAdres',
    'postcode',
    'ondertekendDoor',
    'contactpersoon',
    'btw_nummer',
    'customer.name',
    'plaats',
  );
  for (const entity of ['werkbon', 'installatie', 'gebruiker']) {
    for (const veld of personal)
      t.is(redactDiff(entity, `[${change(veld, '"a"', 'null')}]`), `[${shielded(veld)}]`, veld);
  }
  t.is(redactDiff('gebruiker', `[${change('naam', '"a"', 'null')}]`), `[${shielded('naam')}]`);
  t.is(
    redactDiff('gebruiker', `[${change('rol', '"owner"', '"member"')}]`),
    `[${shown('rol', '"owner"', '"member"')}]`,
  );
});

test('the fields an integration reads the log for are shown', (t) => {
  const werkbon = [
    'nummer',
    'datum',
    'status',
    'omschrijving',
    'ondertekendOp',
    'installatieId',
    'btwPercentage',
    'gegevens',
  ];
  const installatie = [
    'naam',
    'merk',
    'type',
    'serienummer',
    'bouwjaar',
    'koudemiddel',
    'vulling_kg',
    'klantId',
    'klant_id',
  ];
  installatie.push(
    'customerId',
    'plaatsing',
    'locatie',
    'interneNotities',
    'lmraVerplicht',
    'contactorType',
    'instelling',
  );
  for (const veld of werkbon)
    t.is(redactDiff('werkbon', `[${change(veld, '"a"', '1')}]`), `[${shown(veld, '"a"', '1')}]`);
  for (const veld of installatie)
    t.is(redactDiff('installatie', `[${change(veld, '"a"', '1')}]`), `[${shown(veld, '"a"', '1')}]`);
});

test('a signature is shielded by its name and by what it holds', (t) => {
  for (const veld of ['handtekening', 'handtekening_klant', 'customerSignature', 'gegevens.paraaf']) {
    t.is(redactDiff('werkbon', `[${change(veld, 'null', '"x"')}]`), `[${shielded(veld)}]`);
  }
  t.is(redactDiff('werkbon', `[${change('bijlage', 'null', png)}]`), `[${shielded('bijlage')}]`);
});

test('an image or signature nested in a shown value becomes null', (t) => {
  const stored = `[${change('gegevens', `{"druk": 4.20, "foto": ${png}}`, '{"druk": 4.20, "handtekening": {"a": 1}}')}]`;
  t.is(
    redactDiff('werkbon', stored),
    `[${shown('gegevens', '{"druk": 4.20, "foto": null}', '{"druk": 4.20, "handtekening": null}')}]`,
  );
});

test('a value that holds anything encrypted, or personal data by its member names, is shielded', (t) => {
  const hidden = [
    '"enc:v2:k1:AAAA"',
    '"was enc:v1:k1:AAAA"',
    '{"a": ["enc:v2:k1:AAAA"]}',
    String.raw`"\u0065nc:v2:k1:AAAA"`,
  ];
  hidden.push('{"klant": {"naam": "Jansen"}}', '[{"e_mail": "a@b.nl"}]', String.raw`{"a": {"\u0065mail": "a@b.nl"}}`);
  for (const value of hidden) {
    t.is(redactDiff('werkbon', `[${change('gegevens', value, '1')}]`), `[${shielded('gegevens')}]`, value);
    t.is(redactDiff('werkbon', `[${change('gegevens', '1', value)}]`), `[${shielded('gegevens')}]`, value);
    t.is(redactDiff('klant', `[${change('status', '1', value)}]`), `[${shielded('status')}]`, value);
  }
});

test('every change of an entity the gateway does not know is shielded', (t) => {
  for (const entity of ['', 'factuur', 'Werkbon', 'constructor']) {
    t.is(redactDiff(entity, `[${change('status', '1', '2')}]`), `[${shielded('status')}]`);
  }
});

test('members of a stored change other than the three are dropped', (t) => {
  const stored = '[{"ip": "10.0.0.1", "oud": 1, "veld": "status", "extra": {"veld": "naam"}, "nieuw": 2}]';
  t.is(redactDiff('werkbon', stored), `[${shown('status', '1', '2')}]`);
});

test('what is not a change is left out and what is not a list is empty', (t) => {
  for (const json of [
    'null',
    '{}',
    '"x"',
    '7',
    '',
    '[',
    '[1',
    '[{]',
    '[{"veld": "a"',
    '[{"veld": "a"}] x',
    '[{"veld": "a", "oud": x}]',
    '[,]',
  ]) {
    t.is(redactDiff('werkbon', json), '[]', json);
  }
  const stored = `[1, "GEHEIM", null, [${change('a', '1', '2')}], {"oud": "GEHEIM"}, {"veld": 7, "oud": "GEHEIM"}, {"veld": ${png}}, {"veld": "enc:v2:k1:AAAA"}, ${change('status', '1', '2')}]`;
  t.is(redactDiff('werkbon', stored), `[${shown('status', '1', '2')}]`);
});

test('whatever is stored, the answer is a list of changes in the shape of the API', (t) => {
  const value = fc.oneof(
    fc.json(),
    fc.string().map((text) => JSON.stringify(text)),
  );
  const item = fc.oneof(
    value,
    fc.tuple(fc.string(), value, value).map(([veld, oud, nieuw]) => change(veld, oud, nieuw)),
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

test('no value of a customer leaves the log, whatever the shape of the change', (t) => {
  const nested = fc.letrec<{ value: unknown }>((tie) => ({
    value: fc.oneof(fc.constant('GEHEIM'), fc.array(tie('value')), fc.dictionary(fc.string(), tie('value'))),
  })).value;
  fc.assert(
    fc.property(fc.string(), nested, nested, (veld, oud, nieuw) => {
      const stored = `[${change(veld, JSON.stringify(oud), JSON.stringify(nieuw))}]`;
      t.false(redactDiff('klant', stored).includes('GEHEIM'));
      t.false(redactDiff('anders', stored).includes('GEHEIM'));
    }),
  );
});
