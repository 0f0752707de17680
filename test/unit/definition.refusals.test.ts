import test from 'ava';
import { StartRefused } from '../../src/base/errors.js';
import { loadResources, readCodecPresets } from '../../src/resource/definition/load.js';
import { getColumns, listCodecsInUse, type Resource } from '../../src/resource/definition/resource.js';
import { usualDiff } from '../../src/resource/projection/audit-diff.js';
import { altered, field, items, load, owners } from '../support/definitions.js';

/** An alteration of a definition, and what the refusal says: words behind the place of the alteration, or behind one of their own. */
type Refusals = readonly (readonly [path: string, value: unknown, message: string | RegExp])[];

function testRefusals(what: string, definition: object, others: object, refusals: Refusals): void {
  for (const [path, value, message] of refusals) {
    const change = value === undefined ? 'left out' : `set to ${JSON.stringify(value)}`;
    test(`${what} is refused with ${path} ${change}: ${String(message).slice(0, 60)}`, (t) => {
      const load1 = (): unknown => load({ 'items.json': altered(definition, path, value), ...others });
      const text = t.throws(load1, { instanceOf: StartRefused })?.message ?? '';
      if (message instanceof RegExp) t.regex(text, message);
      else t.true(text.includes(message.startsWith('/') ? message : `/${path}: ${message}`), text);
    });
  }
}

const json = { type: 'json', nullable: true };
const shortText = { type: 'text', schema: { maxLength: 2 } };
const oneColumn = { a: { type: 'text' }, b: { type: 'date', column: 'a' } };
const ofItems = (items: object) => field('data', 'json', { items });
const refusals: Refusals = [
  ['name', undefined, "/: it must have required property 'name'"],
  ['name', 'Items!', 'it is not a word of small letters'],
  ['name', 'sync', /\/name: .* one of the gateway's own names; give it another one/],
  ['name', 'owners', /\/name: .*items\.json uses owners, too/],
  ['record', 'owner', /\/record: .*uses owner, too/],
  ['record', 'problem', "it is not a word, or one of the gateway's own names"],
  ['record', 'ownerPage', 'it is not a word'],
  ['view', 'records.owners', /\/view: .*uses records\.owners, too/],
  ['view', 'items', 'it must match pattern'],
  ['view', 'records.items; drop table', 'it must match pattern'],
  ['sort', ['id'], 'there is no such key; remove it, or correct its spelling'],
  ['fields/id', undefined, '/fields: no field is named id; add it'],
  ['fields/id/type', 'boolean', 'an id cannot be of this type; use uuid, bigint or text'],
  ['fields/id/nullable', true, 'the id cannot be NULL'],
  ['fields/id/type', 'bigint', 'the gateway makes UUIDs, and the id is of another type; set /write/ids to database'],
  ['fields/state/type', 'string', 'it must be equal to one of the allowed values: uuid, bigint'],
  ['fields/place/group/town/codec', 'rot13', 'there is no codec rot13; use plain, base64, aes-256-gcm, or'],
  ['fields/state/colour', 'red', 'there is no such key'],
  ['fields/9lives', field('lives', 'text'), 'it must match pattern'],
  ['fields/decodeErrors', field('errors', 'text'), "it is the gateway's own member; rename it"],
  ['fields/entity/column', 'state', '/fields/state/column: /fields/entity shows it, too; show it once'],
  ['fields/place/group', {}, 'it must NOT have fewer than 1 properties'],
  ['fields/size/codec', 'base64', '/fields/size/type: decoded values are texts or JSON; set it to'],
  ['fields/data/show', undefined, '/fields/data: nothing of this JSON is listed; list its members in show'],
  ['fields/state/clean', 'audit-diff', '/fields/state/type: a diff is JSON; set it to json, or remove clean'],
  ['fields/size/log', 'text', '/fields/size/type: the log shows other types anyway, and no JSON; remove log'],
  ['fields/place/group/town/log', 'text', 'the log shows no member of a group; remove log'],
  ['fields/place/group/town/clean', 'audit-diff', 'an encoded value is no diff; remove clean or codec'],
  ['fields/data/schema', { type: 'strnig' }, 'it is not a JSON Schema'],
  ['fields/size/example', 'large', 'it does not fit the field'],
  ['fields/state/write/schema', { maxLength: -1 }, 'it is not a JSON Schema'],
  ['fields/data/pointer', 'name', 'it must match pattern'],
  ['fields/data/pointer', '/name', '/fields/data: there may be nothing at its pointer; make the field nullable'],
  ['fields/madeAt/pointer', '/at', '/fields/madeAt/type: a member of a JSON cell cannot be of this type'],
  ['fields/id/pointer', '/id', 'the id has a column of its own'],
  [
    'fields/more',
    field('town', 'text', { nullable: true, pointer: '/x' }),
    '/fields/more/column: /fields/place/group/town shows it, too; show it once, or give both a pointer',
  ],
  ['fields/state/pointer', '/x', 'a value inside a JSON cell cannot be written; remove `write`'],
  ['fields/data/write', { required: true }, '/fields/data/type: this type cannot be written'],
  ['order', [], 'it must NOT have fewer than 1 items'],
  ['order', ['made_at'], 'it does not end with id; add id: without it the order is not total'],
  ['order', ['made', 'id'], '/order/0: no field shows column made'],
  ['order', ['id', 'id'], 'it must NOT have duplicate items'],
  ['order', ['size', 'id'], '/order/0: column size of type number cannot be a column of the order'],
  ['order', ['state', 'id'], '/order/0: column state can be NULL, so it cannot be'],
  ['order', ['town', 'id'], '/order/0: column town is encoded or JSON, so it cannot be'],
  ['filters/state/column', 'status', 'no field shows column status'],
  ['filters/state/column', 'size', 'column size of type number cannot be compared by equals; use uuid'],
  ['filters/state/kind', 'from', '/filters/state/column: column state of type text cannot be compared by from'],
  ['filters/state/kind', 'near', 'it must be equal to one of the allowed values: equals, from'],
  ['filters/state/column', 'town', 'column town is encoded or JSON'],
  ...['page', 'perPage', 'cursor', 'total', 'workspace', 'limit', 'skip', 'timeZone', 'after0', 'until1'].map(
    (name) => [`filters/${name}`, items.filters.state, 'it is a parameter of every list or statement'] as const,
  ),
  ['version', undefined, '/: writes need a version to compare; set version'],
  ['version', 'revision', 'no field shows column revision'],
  ['version', 'state', 'column state of type text cannot be the version; use integer, bigint'],
  ['fields/version/nullable', true, '/version: column version can be NULL'],
  ['detail', false, 'nothing shows the version; set it to true, or remove version'],
  ['write', undefined, '/fields/ownerId/write: the resource is only read; add `write`'],
  ['write/audit', undefined, "/write: it must have required property 'audit'"],
  ['write/audit', true, 'it must be equal to constant'],
  ['write/audit/created', undefined, "/write/audit: it must have required property 'created'"],
  ['auditEntity', undefined, '/: the log has no name for the resource; set auditEntity'],
  ['auditFields', { id: 'uuid', TOWN: 'text' }, '/auditFields/TOWN: its values are personal or encoded'],
  ['auditFields', ['id'], '/auditFields: it must be object'],
  ['auditFields', { id: 'json' }, '/auditFields/id: it must be equal to one of the allowed values: uuid'],
  ['write/onChange', { revision: 'increment' }, '/write/onChange/revision: no field shows column revision'],
  ['write/onChange', { made_at: 'increment' }, '/write/onChange/made_at: column made_at of type timestamp cannot be'],
  ['write/onChange', { version: 'now' }, '/write/onChange/version: column version of type integer cannot be moved'],
  ['write/onChange', { version: 'double' }, '/write/onChange/version: it must be equal to one of the allowed values'],
  ['write/onChange', { owner_id: 'increment' }, '/write/onChange/owner_id: the client sets column owner_id; remove'],
  ['write/onChange', { id: 'increment' }, '/write/onChange/id: the id cannot move'],
  ['write/onChange', { state: 'now' }, '/write/onChange/state: column state can be NULL'],
  ['fields/data/diff', { old: 0, new: 1 }, 'only audit-diff reads it; set clean, or remove it'],
  ['fields/data/diff', { old: 0 }, "it must have required property 'new'"],

  ['fields/data/diff', { field: 'f', old: 0, new: 1 }, 'a change is an array or an object, not both'],
  ['fields/data/words', { field: 'f', old: 'o', new: 'n', shielded: 's' }, 'only audit-diff reads it; set clean, or'],

  ['fields/data/items', { type: 'tekst' }, '/fields/data/items/type: it must be equal to one of the allowed values'],
  ['fields/data/items', {}, "/fields/data/items: it must have required property 'type'"],
  ['fields/data/fields', {}, '/fields/data/fields: it must NOT have fewer than 1 properties'],
  ['fields/state/items', { type: 'text' }, '/fields/state/type: only type json has items; correct one of them'],
  ['fields/state/fields', { a: { type: 'text' } }, '/fields/state/type: only type json has fields'],
  ['fields/state/show', ['/a'], '/fields/state/type: only type json has members to show'],
  ['fields/data/show', ['a'], '/fields/data/show/0: it must match pattern'],
  [
    'fields/data/fields',
    { a: { type: 'json', items: { type: 'json', show: ['/a'], items: { type: 'text' } } } },
    '/fields/data/fields/a/items/show: items say what is shown; remove one of them',
  ],
  ['fields/data', ofItems({ type: 'json', fields: { a: json } }), '/fields/data/items/fields/a: nothing of this JSON'],
  [
    'fields/data',
    field('data', 'json', { fields: oneColumn }),
    '/fields/data/fields: two have the same column; show it',
  ],
  ['fields/data', ofItems({ type: 'bigint', references: 'people' }), '/fields/data/items/references: there is no'],
  ['fields/data', ofItems({ ...shortText, example: 'abc' }), '/fields/data/items/example: it does not fit the field'],
  ['fields/data', ofItems({ type: 'text', schema: { type: 'tekst' } }), '/fields/data/items/schema: it is not a JSON'],
  ['write/audit/columns', { what: 'x' }, '/write/audit/columns/what: there is no such key'],
  ['fields/data/diff', { old: -1, new: 1 }, '/fields/data/diff/old: it must be >= 0'],
  ['write/ids', 'client', 'it must be equal to one of the allowed values: gateway, database'],
  ['fields/place/group/town/write', {}, 'a member of a group cannot be written'],
  ['fields/place/group/town/write', {}, '/fields/place/group/town/codec: an encoded value cannot be written'],
  ['fields/id/write', { required: true }, '/fields/id/column: the client cannot set this column; remove `write`'],
  ['fields/size/column', 'workspace_id', '/fields/size/column: the tenant wall has a column of this name for itself'],
  ['fields/size/column', 'sync_version', '/fields/size/column: the tenant wall has a column of this name for itself'],
  ['fields/limit', field('size_max', 'text', { nullable: true, write: {} }), '/fields/limit/write: a parameter of'],
  ['fields/madeAt/write', { required: true }, '/fields/madeAt/type: this type cannot be written'],
  ['fields/size/write', { required: true }, '/fields/size: a written number has no bounds'],
  ['fields/entity/write', {}, '/fields/entity: POST may leave it out, and it cannot be NULL; set'],
  ['fields/ownerId/references', 'people', 'there is no resource people'],
  ['fields/ownerId/type', 'uuid', '/fields/ownerId/references: the ids of owners are of another type than uuid'],
];
testRefusals('a definition', items, { 'owners.json': owners }, refusals);
const ofSync = ['since', 'prefix', 'depth', 'by'].map(
  (name) => [`filters/${name}`, items.filters.state, 'it is a parameter of sync; give the filter another'] as const,
);
testRefusals('a definition with sync', { ...items, sync: {} }, { 'owners.json': owners }, ofSync);

test('without any writable field a resource cannot have writes', (t) => {
  const unwritable = altered(altered(items, 'fields/ownerId/write', undefined), 'fields/state/write', undefined);
  t.throws(() => load({ 'items.json': unwritable }), {
    message: /\/fields: no field can be written; add `write` to a field/,
  });
});

const logOf = (name: string, diff?: object) => ({
  ...owners,
  name,
  record: `${name}Entry`,
  view: `records.${name}`,
  fields: {
    id: field('id', 'bigint'),
    entity: field('entity', 'text'),
    diff: field('diff', 'json', { clean: 'audit-diff', ...(diff && { diff }) }),
  },
});
const pairs = { old: 0, new: 1 };
const twoShapes = { 'log.json': logOf('log'), 'old-log.json': logOf('oldlog', pairs) };
const logs: readonly (readonly [files: object, message: RegExp])[] = [
  [
    { 'items.json': items, ...twoShapes },
    /items\.json \/write\/audit: the definitions store changes in different shapes of diff; use one, or/,
  ],
  [
    { 'items.json': items, 'log.json': altered(logOf('log'), 'fields/diff/diff', { old: 'a', new: 'a' }) },
    /\/fields\/diff: two parts of a change have the same place or word; give each its own/,
  ],
  [{ 'items.json': altered(items, 'write/audit/view', 'log') }, /items\.json \/write\/audit\/view: it must match/],
];
for (const [files, message] of logs) {
  test(`logs that contradict each other are refused: ${message.source.slice(0, 90)}`, (t) => {
    const error = t.throws(() => load({ 'owners.json': owners, ...files }), { instanceOf: StartRefused });
    t.is(error?.message.split('\n').length, 2, error?.message);
    t.regex(error?.message ?? '', message);
  });
}

test('a write is logged in the shape of the log, or else in the usual one', (t) => {
  const shapes = (files: object) =>
    load({ 'owners.json': owners, ...files }).flatMap(({ name, write }) =>
      write?.audit ? [[name, write.audit.view, write.audit.diff]] : [],
    );
  const usual = 'gateway.logboeken_write';
  t.deepEqual(shapes({ 'items.json': items }), [['items', usual, usualDiff]]);
  t.deepEqual(shapes({ 'items.json': items, 'log.json': logOf('log', pairs) }), [
    ['items', 'gateway.log_write', pairs],
  ]);
  const viewed = altered(items, 'write/audit/view', 'records.entries_write');
  t.deepEqual(shapes({ 'items.json': viewed, 'log.json': logOf('log', pairs) }), [
    ['items', 'gateway.entries_write', pairs],
  ]);
});

test('an audit diff needs the field that names the entity', (t) => {
  const log = { ...altered(items, 'fields/entity', undefined) };
  const definition = altered(log, 'fields/data/clean', 'audit-diff');
  t.throws(() => load({ 'items.json': definition, 'owners.json': owners }), {
    message: /\/fields: audit-diff decides by the field entity, which is not there; add a field named entity/,
  });
});

test('a file that cannot be a definition is refused by name', (t) => {
  t.throws(() => load({ 'items.json': '{"name": ' }), {
    message: /items\.json \/: the file is not JSON .*; correct the syntax/,
  });
  t.throws(() => load({ 'items.json': '[]' }), { message: /items\.json \/: it must be object/ });
  const twice = JSON.stringify(owners).replace('"name"', '"name":"other","name"');
  t.throws(() => load({ 'owners.json': twice }), {
    message: /owners\.json \/name: the key stands there twice; keep one/,
  });
  const inside = JSON.stringify(owners).replace('"type"', '"type":"text","type"');
  t.throws(() => load({ 'owners.json': inside }), { message: /\/fields\/id\/type: the key stands there twice/ });
});

test('a folder without definitions is refused by name', (t) => {
  t.throws(() => load({}), { instanceOf: StartRefused, message: /has no \*\.json file/ });
  t.throws(() => loadResources('/does/not/exist'), {
    instanceOf: StartRefused,
    message: 'RESOURCES_DIR /does/not/exist cannot be read: ENOENT.',
  });
});

test('all flaws of all files are told at once', (t) => {
  const first = altered(altered(items, 'order', ['id', 'size']), 'fields/size/example', 'x');
  const error = t.throws(() => load({ 'items.json': first, 'owners.json': altered(owners, 'detial', true) }));
  for (const flaw of [
    /items\.json \/order\/1/,
    /items\.json \/order:/,
    /items\.json.*example/,
    /owners\.json \/detial/,
  ])
    t.regex(error?.message ?? '', flaw);
  t.notRegex(error?.message ?? '', /no resource reads view|is no resource/, 'a flaw of one file is none of another');
});

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
  view: 'records.customers',
  version: 'version',
  order: ['made', 'id'],
  codecs: { vault, plainer: { cipher: 'none', encoding: 'hex' }, own: { cipher: 'module', encoding: 'text' } },
  write: { view: 'records.customers_write', ids: 'database', audit: false },
  fields: {
    id: field('id', 'bigint'),
    made: field('made', 'date'),
    version: field('version', 'integer'),
    name: field('sealed', 'text', { codec: 'vault', pointer: '/name', nullable: true }),
    data: field('document', 'json', { codec: 'plainer', show: ['/a'] }),
    state: field('state', 'text', { nullable: true, write: {} }),
  },
};

const codecRefusals: Refusals = [
  ['codecs', [], 'it must be object'],
  ['codecs/vault/cipher', 'rot13', 'it must be equal to one of the allowed values: none, aes-256-gcm, module'],
  [
    'codecs/vault/cipher',
    'none',
    /\/codecs\/vault\/keyId: cipher none has no keyId.*\n.*layout.*\n.*\/codecs\/vault\/aad: only cipher aes-256-gcm has aad; remove it/,
  ],
  ['codecs/vault/colour', 'red', 'there is no such key'],
  ['codecs/vault/layout', undefined, "/codecs/vault: it must have required property 'layout'"],
  ['codecs/vault/layout', ['nonce12', 'data'], 'it does not have nonce, data and tag, each once'],
  ['codecs/vault/layout', ['data', 'tag16', 'data'], 'it does not have nonce, data and tag'],
  ['codecs/vault/layout', ['nonce12', 'data', 'tag4'], '/codecs/vault/layout/2: it must match pattern'],
  ['codecs/vault/encoding', 'text', 'sealed bytes are no text'],
  ['codecs/vault/encoding', 'base32', 'it must be equal to one of'],
  ['codecs/vault/keyId', undefined, '/codecs/vault: nothing says which key seals a value; put {keyId}'],
  ['codecs/vault/keyId', 'k 1', 'it must match pattern'],
  ['codecs/vault/keyId/column', 'sealed', '/codecs/vault: column sealed is encoded'],
  ['codecs/vault/keyId/column', 'state', '/codecs/vault: column state can be written'],
  ['codecs/vault/prefix', 'v:{keyId}:', '/codecs/vault/keyId: the prefix has the id of the key, too'],
  ['codecs/vault/prefix', 'v:{key}:', 'it has braces other than one {keyId}'],
  ['codecs/vault/prefix', 'v:{keyId', 'it has braces other than one {keyId}'],
  ['codecs/vault/prefix', '{keyId}{keyId}:', 'it has braces other than one {keyId}'],
  ['codecs/vault/prefix', 'v:{keyId}', 'it has braces other than one {keyId}, or nothing ends that; put a character'],
  ['codecs/vault/prefix', 'v:{keyId}x', 'it has braces other than one {keyId}, or nothing ends that'],
  ['codecs/vault/aad', 'customer:{ID}', 'it has a brace or a placeholder that is none; use {workspace}, {table},'],
  ['codecs/vault/aad', 'customer:{keyId}', 'it has a brace or a placeholder that is none'],
  ['codecs/vault/aad', 'customer:{workspace_id}', 'it has a brace or a placeholder that is none; use {workspace}'],
  ['codecs/vault/aad', 'customer:{id', 'it has a brace or a placeholder that is none'],
  ['codecs/vault/aad', '{document}', '/codecs/vault: column document is encoded'],
  ['codecs/vault/aad', '{state}', '/codecs/vault: column state can be written'],
  ['codecs/plainer/prefix', '{keyId}:', 'cipher none has no key'],
  ['codecs/plainer', { cipher: 'none', encoding: 'bytea', prefix: 'x' }, '/codecs/plainer/prefix: a bytea has no'],
  ['codecs/vault/older', 'plain', 'it must be object'],
  ['codecs/vault/older', { cipher: 'none', encoding: 'hex' }, '/codecs/vault: no prefix tells older values from'],
  ['codecs/vault', { ...prefixed, older: { ...vault, older: vault } }, '/codecs/vault/older/older: older values'],
  ['codecs/vault', { ...prefixed, older: prefixed }, '/codecs/vault/older: an older value begins as others do'],
  ['codecs/plainer', { cipher: 'none', encoding: 'bytea', older: vault }, '/codecs/plainer/older: no prefix tells'],
  ['codecs/vault/older', { ...vault, encoding: 'bytea', keyId: 'k' }, '/codecs/vault/older/encoding: a column is'],
  ['codecs/own/layout', ['data'], 'only cipher aes-256-gcm has a layout'],
  ['codecs/Vault', vault, 'it must match pattern'],
  ['fields/name/codec', 'vaults', 'there is no codec vaults; use plain, base64, aes-256-gcm, vault,'],
  ['fields/name/codec', 'constructor', 'there is no codec constructor'],
  ['fields/data/clean', 'audit-diff', 'an encoded value is no diff'],
];
testRefusals('a codec', customers, {}, codecRefusals);

test('a row has the columns that its codecs read, and no others', (t) => {
  const [resource] = load({ 'customers.json': customers }) as [Resource];
  t.deepEqual(getColumns(resource).slice(-2), ['vault_key', 'region']);
  t.is(new Set(getColumns(resource)).size, 8);
  const unused = altered(customers, 'fields/name/codec', 'base64');
  t.false(getColumns((load({ 'customers.json': unused }) as [Resource])[0]).includes('vault_key'));
});

test('a row has the columns that the codec of older values reads', (t) => {
  const older = altered(customers, 'codecs/before', { ...prefixed, older: vault });
  const [resource] = load({ 'customers.json': altered(older, 'fields/name/codec', 'before') }) as [Resource];
  t.deepEqual(getColumns(resource).slice(-2), ['region', 'vault_key']);
  const prefixes = listCodecsInUse(resource).map(({ prefix }) => prefix);
  t.deepEqual(prefixes, ['enc:v2:{keyId}:', undefined, undefined]);
});

test('a definition can replace a preset', (t) => {
  const replaced = altered(customers, 'codecs/base64', { cipher: 'none', encoding: 'base64url' });
  const [resource] = load({ 'customers.json': replaced }) as [Resource];
  t.is(resource.codecs.base64?.encoding, 'base64url');
  t.is(readCodecPresets().base64?.encoding, 'base64');
});
