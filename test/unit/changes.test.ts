import test from 'ava';
import type { CompiledWrite } from '../../src/definition/compiled.js';
import type { FieldType } from '../../src/definition/field-types.js';
import { diffOfMembers } from '../../src/write/transaction.js';

/** The change of a field of a type; undefined: it is unchanged. */
function changeOf(type: FieldType, before: string | null, after: string | null): unknown {
  const write = { validators: { writable: [{ name: 'f', column: 'f', type, auditName: 'f' }] } };
  const [change] = diffOfMembers(write as unknown as CompiledWrite, { f: before }, { f: after });
  return change && [change.before, change.after];
}

test('a number that is written in another way is no change', (t) => {
  for (const [before, after] of [
    ['1.50', '1.5'],
    ['100', '1e2'],
    ['-0.0', '0'],
  ] as const)
    t.is(changeOf('number', before, after), undefined);
  t.deepEqual(changeOf('number', '1.50', '1.51'), [1.5, 1.51]);
});

test('a number with more digits than JavaScript keeps is another one, and the audit log keeps its digits', (t) => {
  t.deepEqual(changeOf('number', '12345678901234.567891', '12345678901234.568'), [
    '12345678901234.567891',
    12345678901234.568,
  ]);
  t.deepEqual(changeOf('integer', '9007199254740993', '9007199254740992'), ['9007199254740993', 9007199254740992]);
  t.deepEqual(changeOf('number', 'NaN', '0'), ['NaN', 0]);
  t.is(changeOf('number', 'NaN', 'NaN'), undefined);
});

test('a new record without a member that has an inherited name, such as constructor, logs no change of it', (t) => {
  const write = { validators: { writable: [{ name: 'constructor', type: 'text', auditName: 'constructor' }] } };
  t.deepEqual(diffOfMembers(write as unknown as CompiledWrite, null, Object.create(null)), []);
});
