import fc from 'fast-check';
import { ownCanary } from './request.js';
import { members } from './right.js';
import type { World } from './world.js';

const bytes = (text: string): Buffer => Buffer.from(text);
const raw = (latin1: string): Buffer => Buffer.from(latin1, 'latin1');

/** Bodies that a write must refuse, or had better take for what they are. */
export function oddBodies(world: World): fc.Arbitrary<Buffer> {
  const workspace = fc.constantFrom(...world.workspaces.slice(0, 6));
  const valid = world.workspaces.slice(0, 6).map((each) => fc.record(members(each)));
  const names = ['customerId', 'naam', 'omschrijving', 'merk', 'bouwjaar', 'inbedrijfstelling'];
  const others = [
    'koudemiddel',
    'vullingKg',
    'interneNotities',
    'id',
    'version',
    'createdAt',
    'workspace_id',
    'x',
    '',
    'constructor',
    'toString',
    '~/',
  ];
  const literals = [
    '1e400',
    '-1e400',
    '1.0',
    '2.019e3',
    '2019.5',
    '9007199254740993',
    '-0',
    '01',
    '+1',
    '.5',
    '1.',
    'NaN',
    'Infinity',
    'undefined',
    '0x7e3',
    "'a'",
    '"\\u0000"',
    '"\\ud800"',
    '"\\udc00\\ud800"',
    '"\\x41"',
    '"a\tb"',
    '"\\"',
    '""',
    '" "',
    '"\\u00a0"',
    '"0000-01-01"',
    '"2024-02-30"',
    '"9999-12-31"',
    '"10000-01-01"',
    '"2024-01-01T00:00:00Z"',
    '"infinity"',
    '"a\\nb"',
    '[]',
    '{}',
    'true',
    'null',
    '[[[1]]]',
    '{"a":1}',
  ];
  const withMember = (name: string, literal: string): Buffer =>
    bytes(`{"naam":"${ownCanary}",${JSON.stringify(name)}:${literal}}`);
  const fixed: readonly Buffer[] = [
    ...[
      '',
      ' ',
      '{',
      '}',
      '[',
      '{}',
      '[]',
      'null',
      '1',
      '"naam"',
      '{"naam":}',
      '{"naam":"x",}',
      "{'naam':'x'}",
      '{naam:1}',
      '{"naam":"x"}{',
      '{"naam":"x"} x',
      '/**/{}',
      '{"naam":"x" "merk":"y"}',
    ].map(bytes),
    bytes('\ufeff{"naam":"x"}'),
    raw('{"naam":"caf\xe9"}'),
    raw('{"naam":"\xc0\x80"}'),
    raw('{"naam":"\xed\xa0\x80"}'),
    raw('{"naam":"\xf4\x90\x80\x80"}'),
    raw('{"naam":"\0"}'),
    Buffer.from('{"naam":"x"}', 'utf16le'),
    bytes('naam=x&merk=y'),
    bytes('--x\r\nContent-Disposition: form-data; name="naam"\r\n\r\nx\r\n--x--\r\n'),
    bytes('{"naam":"x","naam":"y"}'),
    bytes('{"naam":"x","\\u006eaam":"y"}'),
    bytes('{"__proto__":{"naam":"x"}}'),
    bytes('{"naam":"x","__proto__":null,"constructor":{"prototype":{}}}'),
    bytes(JSON.stringify({ naam: 'x', toString: null, hasOwnProperty: 1 })),
  ];
  const sized = fc
    .constantFrom(199, 200, 201, 4001, 65_500, 65_535, 65_536, 65_537, 70_000, 300_000)
    .map((size) => bytes(`{"naam":"${'x'.repeat(Math.max(0, size - 11))}"}`));
  const deep = fc
    .tuple(fc.constantFrom(19, 20, 21, 1000, 30_000), fc.constantFrom('[]', '{}'))
    .map(([depth, pair]) =>
      bytes(
        pair === '[]'
          ? `${'['.repeat(depth)}${']'.repeat(depth)}`
          : `${'{"a":'.repeat(Math.min(depth, 10_000))}1${'}'.repeat(Math.min(depth, 10_000))}`,
      ),
    );
  const many = fc
    .constantFrom(50, 5000)
    .map((count) => bytes(`{${Array.from({ length: count }, (_, n) => `"x${n}":1`).join()}}`));
  return fc.oneof(
    { weight: 5, arbitrary: fc.constantFrom(...fixed) },
    {
      weight: 5,
      arbitrary: fc
        .tuple(fc.constantFrom(...names), fc.constantFrom(...literals))
        .map(([name, literal]) => withMember(name, literal)),
    },
    {
      weight: 2,
      arbitrary: fc
        .tuple(fc.constantFrom(...others), fc.constantFrom(...literals))
        .map(([name, literal]) => withMember(name, literal)),
    },
    {
      weight: 3,
      arbitrary: fc
        .tuple(fc.oneof(...valid), fc.constantFrom(...names), fc.jsonValue({ maxDepth: 3 }))
        .map(([body, name, value]) => bytes(JSON.stringify({ ...body, [name]: value }))),
    },
    {
      weight: 2,
      arbitrary: fc
        .tuple(workspace, fc.constantFrom(0, 1))
        .map(([{ customers, installations }, which]) =>
          bytes(JSON.stringify({ customerId: which === 0 ? customers[0] : installations[0], naam: 'x' })),
        ),
    },
    {
      weight: 1,
      arbitrary: fc
        .tuple(fc.constantFrom(...names), fc.string({ unit: 'binary', maxLength: 300 }))
        .map(([name, text]) => bytes(JSON.stringify({ naam: 'x', [name]: text }))),
    },
    {
      weight: 1,
      arbitrary: workspace.map(({ tokens }) => bytes(JSON.stringify({ naam: 'x', access_token: tokens.all }))),
    },
    { weight: 1, arbitrary: fc.jsonValue().map((value) => bytes(JSON.stringify(value))) },
    { weight: 1, arbitrary: fc.uint8Array({ maxLength: 200 }).map((array) => Buffer.from(array)) },
    { weight: 4, arbitrary: sized },
    { weight: 1, arbitrary: deep },
    { weight: 1, arbitrary: many },
  );
}
