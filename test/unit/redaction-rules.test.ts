import test from 'ava';
import { redactionOf } from '../../src/definition/compiled.js';
import { items, load, owners } from '../support/definitions.js';
import { redactedText } from '../support/redacted.js';

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
