import test from 'ava';
import { looksStructured } from '../../src/projection/plain-texts.js';

const person = { naam: 'Jansen', gsm: '0612345678' };
const json = JSON.stringify(person);
const structured = [
  json,
  ` \n\t${json}`,
  `\ufeff${json}`,
  `\u200b${JSON.stringify(['Jansen', 'Utrecht'])}`,
  JSON.stringify(json),
  JSON.stringify(JSON.stringify(json)),
  JSON.stringify(json).slice(1, -1),
  `was: ${json}`,
  '["Jansen"]',
  "{'naam': 'Jansen'}",
  "'naam': 'Jansen'",
  '"naam"=>"Jansen"',
  '"Jansen"',
  '"Jansen", "Utrecht"',
  '｛"naam"："Jansen"｝',
  '<klant><naam>Jansen</naam></klant>',
  'zie <naam>Jansen',
  '&lt;naam&gt;Jansen',
  '&#123;&#34;naam&#34;',
  encodeURIComponent(json),
  'naam=Jansen&gsm=0612345678',
  'naam = Jansen',
  'naam: Jansen\nstraat: Kerkstraat',
  '- naam: Jansen\r\n- straat: Kerkstraat',
  'naam: Jansen; gsm: 0612345678',
  'Jansen;Kerkstraat 12;Utrecht',
  'Jansen|Kerkstraat 12|Utrecht',
  'Jansen\tKerkstraat 12\tUtrecht',
  'Jansen,Kerkstraat 12,Utrecht',
  '(Jansen,Kerkstraat)',
  'a:1:{s:4:"naam";s:6:"Jansen";}',
  Buffer.from(json).toString('base64'),
  Buffer.from('{"n":"Jo"}').toString('base64'),
  Buffer.from('["Jansen"]').toString('base64url'),
  Buffer.from(json).toString('hex'),
  Buffer.from('{"naam":"Jo"}').toString('hex'),
  String.raw`\u007b\u0022naam`,
];

test('a string that looks like structured data is recognised', (t) => {
  for (const value of structured) {
    t.true(looksStructured(value), value);
  }
});

test('words, dates, codes and prose are not taken for structured data', (t) => {
  const plain = [
    'in_uitvoering',
    '2019-03-10',
    '2021-05-10T14:03:12.120Z',
    '2018-03-25 01:00:00+02',
    'WB-2026-000123',
    '',
  ];
  plain.push('Storing "hoge druk"\nkamer 7', 'Dak "noord"\\12', 'Kelder (links)', 'ERQ125AV1', 'R449A', 'BI10240000');
  plain.push(
    '0b0e7c7e-1c5e-4a57-9d0b-4c6f1f1f1f01',
    'Druk 18/4,2 bar < 20 & 80% vochtigheid; geen "lek".',
    "'t Hoekje",
  );
  plain.push(
    'Let op: filter vervangen, daarna drukken meten.',
    'Koelcel, vriescel en toonbank',
    'Café Zoë – 1e verdieping',
  );
  for (const value of plain) {
    t.false(looksStructured(value), value);
  }
});

test('a long text is judged in time that grows with its length', (t) => {
  const began = performance.now();
  for (const piece of [',', '(,', 'a: ', '"', ' ', '\n', ',a', ');', 'a\n-', "' ", '\\', 'a '])
    for (const start of ['', '(', '"', 'a']) looksStructured(start + piece.repeat(100_000));
  t.true(performance.now() - began < 5000);
});
