import test from 'ava';
import { codecPresets } from '../../src/definition/load.js';
import { codecsInUse, columnsOf, type Resource } from '../../src/definition/resource.js';
import { StartRefused } from '../../src/errors.js';
import { altered, field, load } from '../support/definitions.js';

const vault = {
  cipher: 'aes-256-gcm',
  encoding: 'base64',
  layout: ['tag16', 'nonce12', 'data'],
  keyId: { column: 'vault_key' },
  aad: 'customer:{id}:{region}',
};
const prefixed = { ...vault, keyId: undefined, prefix: 'enc:v2:{keyId}:' };
const customers = {
  name: 'customers',
  record: 'customer',
  description: 'Customers.',
  view: 'api.customers',
  version: 'version',
  order: ['made', 'id'],
  codecs: { vault, plainer: { cipher: 'none', encoding: 'hex' }, own: { cipher: 'module', encoding: 'text' } },
  write: { view: 'api.customers_write', ids: 'database', audit: false },
  fields: {
    id: field('id', 'bigint'),
    made: field('made', 'date'),
    version: field('version', 'integer'),
    name: field('sealed', 'text', { codec: 'vault', pointer: '/name', nullable: true }),
    data: field('document', 'json', { codec: 'plainer', clean: 'json-images' }),
    state: field('state', 'text', { nullable: true, write: {} }),
  },
};

const refusals: readonly (readonly [path: string, value: unknown, message: RegExp])[] = [
  ['codecs', [], /\/codecs: it must be object/],
  [
    'codecs/vault/cipher',
    'rot13',
    /\/codecs\/vault\/cipher: it must be equal to one of the allowed values: none, aes-256-gcm, module/,
  ],
  [
    'codecs/vault/cipher',
    'none',
    /\/codecs\/vault\/keyId: cipher none has no keyId.*\n.*layout.*\n.*\/codecs\/vault\/aad: cipher none has no aad; remove it/,
  ],
  ['codecs/vault/colour', 'red', /\/codecs\/vault\/colour: there is no such key/],
  ['codecs/vault/layout', undefined, /\/codecs\/vault\/layout: it does not have nonce, data and tag, each once/],
  [
    'codecs/vault/layout',
    ['nonce12', 'data'],
    /\/codecs\/vault\/layout: it does not have nonce, data and tag, each once/,
  ],
  ['codecs/vault/layout', ['data', 'tag16', 'data'], /\/codecs\/vault\/layout: it does not have nonce, data and tag/],
  ['codecs/vault/layout', ['nonce12', 'data', 'tag4'], /\/codecs\/vault\/layout\/2: it must match pattern/],
  ['codecs/vault/encoding', 'text', /\/codecs\/vault\/encoding: sealed bytes are no text/],
  ['codecs/vault/encoding', 'base32', /\/codecs\/vault\/encoding: it must be equal to one of/],
  ['codecs/vault/keyId', undefined, /\/codecs\/vault: nothing says which key seals a value; put \{keyId\}/],
  ['codecs/vault/keyId', 'k 1', /\/codecs\/vault\/keyId: it must match pattern/],
  ['codecs/vault/keyId/column', 'sealed', /\/codecs\/vault\/keyId\/column: column sealed is encoded/],
  ['codecs/vault/keyId/column', 'state', /\/codecs\/vault\/keyId\/column: column state can be written/],
  ['codecs/vault/prefix', 'v:{keyId}:', /\/codecs\/vault\/keyId: the prefix has the id of the key, too/],
  ['codecs/vault/prefix', 'v:{key}:', /\/codecs\/vault\/prefix: it has braces other than one \{keyId\}/],
  ['codecs/vault/prefix', 'v:{keyId', /\/codecs\/vault\/prefix: it has braces other than one \{keyId\}/],
  ['codecs/vault/prefix', '{keyId}{keyId}:', /\/codecs\/vault\/prefix: it has braces other than one \{keyId\}/],
  ['codecs/vault/prefix', 'v:{keyId}', /\/codecs\/vault\/prefix: nothing ends \{keyId\}; put a character behind it/],
  ['codecs/vault/prefix', 'v:{keyId}x', /\/codecs\/vault\/prefix: nothing ends \{keyId\}/],
  ['codecs/vault/legacyPrefix', 'v0:', /\/codecs\/vault\/legacyPrefix: a legacy value begins as others do/],
  [
    'codecs/vault/aad',
    'customer:{ID}',
    /\/codecs\/vault\/aad: there is no placeholder \{ID\}; use workspace, table, column, id or/,
  ],
  ['codecs/vault/aad', 'customer:{keyId}', /\/codecs\/vault\/aad: there is no placeholder \{keyId\}/],
  ['codecs/vault/aad', 'customer:{id', /\/codecs\/vault\/aad: it has a brace that is no placeholder/],
  ['codecs/vault/aad', '{document}', /\/codecs\/vault\/aad: column document is encoded/],
  ['codecs/vault/aad', '{state}', /\/codecs\/vault\/aad: column state can be written, which breaks its values/],
  ['codecs/plainer/prefix', '{keyId}:', /\/codecs\/plainer\/prefix: cipher none has no key/],
  [
    'codecs/plainer',
    { cipher: 'none', encoding: 'bytea', prefix: 'x' },
    /\/codecs\/plainer\/prefix: a bytea has no text before/,
  ],
  ['codecs/vault/older', 'vaults', /\/codecs\/vault\/older: there is no codec vaults; use plain/],
  ['codecs/vault/older', 'constructor', /\/codecs\/vault\/older: there is no codec constructor/],
  ['codecs/vault/older', 'plainer', /\/codecs\/vault\/older: no prefix tells older values from others; set a prefix/],
  ['codecs/vault', { ...prefixed, older: 'vault' }, /\/codecs\/vault\/older: vault has older values, too/],
  ['codecs/vault', { ...prefixed, older: 'aes-256-gcm' }, /\/codecs\/vault\/older: an older value begins as others do/],
  [
    'codecs/plainer',
    { cipher: 'none', encoding: 'bytea', older: 'aes-256-gcm' },
    /\/codecs\/plainer\/older: a column is either a bytea or a text/,
  ],
  ['codecs/own/layout', ['data'], /\/codecs\/own\/layout: cipher module has no layout/],
  ['codecs/Vault', vault, /\/codecs\/Vault: it must match pattern/],
  [
    'fields/name/codec',
    'vaults',
    /\/fields\/name\/codec: there is no codec vaults; use plain, base64, aes-256-gcm, vault, plainer, own/,
  ],
  ['fields/name/codec', 'constructor', /\/fields\/name\/codec: there is no codec constructor/],
  ['fields/data/clean', 'audit-diff', /\/fields\/data\/clean: an encoded value cannot be cleaned/],
  ['fields/data/type', 'number', /\/fields\/data\/codec: decoded values are texts or JSON, not of type number/],
];
for (const [path, value, message] of refusals) {
  const change = value === undefined ? 'left out' : `set to ${JSON.stringify(value)}`;
  test(`a codec is refused with ${path} ${change}: ${message.source.slice(0, 60)}`, (t) => {
    t.throws(() => load({ 'customers.json': altered(customers, path, value) }), { instanceOf: StartRefused, message });
  });
}

const legacy = { ...vault, keyId: undefined, prefix: 'v2:{keyId}:', legacyPrefix: 'v1:{keyId}:' };
const legacyRefusals: readonly (readonly [change: object, message: RegExp])[] = [
  [{ legacyPrefix: 'v1:' }, /legacyPrefix: only one of both prefixes has \{keyId\}/],
  [{ aad: undefined }, /legacyPrefix: values without aad are legacy, and none has it/],
  [{ legacyPrefix: 'v2:{keyId};' }, /legacyPrefix: a legacy value begins as others do/],
];
for (const [change, message] of legacyRefusals) {
  test(`a legacy prefix is refused: ${message.source}`, (t) => {
    const changed = altered(customers, 'codecs/vault', { ...legacy, ...change });
    t.throws(() => load({ 'customers.json': changed }), { instanceOf: StartRefused, message });
  });
}

test('a row has the columns that its codecs read, and no others', (t) => {
  const [resource] = load({ 'customers.json': customers }) as [Resource];
  t.deepEqual(columnsOf(resource).slice(-2), ['vault_key', 'region']);
  t.is(new Set(columnsOf(resource)).size, 8);
  const unused = altered(customers, 'fields/name/codec', 'base64');
  t.false(columnsOf((load({ 'customers.json': unused }) as [Resource])[0]).includes('vault_key'));
});

test('a row has the columns that the codec of older values reads', (t) => {
  const older = altered(customers, 'codecs/before', { ...prefixed, older: 'vault' });
  const [resource] = load({ 'customers.json': altered(older, 'fields/name/codec', 'before') }) as [Resource];
  t.deepEqual(columnsOf(resource).slice(-2), ['region', 'vault_key']);
  t.deepEqual(
    codecsInUse(resource).map(({ prefix }) => prefix),
    ['enc:v2:{keyId}:', undefined, undefined],
  );
});

test('a definition can replace a preset', (t) => {
  const replaced = altered(customers, 'codecs/base64', { cipher: 'none', encoding: 'base64url' });
  const [resource] = load({ 'customers.json': replaced }) as [Resource];
  t.is(resource.codecs.base64?.encoding, 'base64url');
  t.is(codecPresets().base64?.encoding, 'base64');
});
