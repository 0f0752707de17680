import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { urlAs } from '../../demo/cluster/passwords.js';
import { apps } from '../../demo/seed/apps.js';
import { seed } from '../../demo/seed/seed.js';
import { projectRoot } from '../../src/paths.js';
import type { Settings } from '../../src/settings.js';
import { adopted, emptyFolder, newDatabase, shop, wrong } from '../support/adopted.js';
import { commandLine, connections } from '../support/command-line.js';
import { words } from '../support/words.js';
import { gatewayTest, shared } from '../support/workspace.js';

// `adopt` as a process on the reference apps, as an operator runs it on an app of another; then the commands that it recommends.

const test = gatewayTest();
test.serial(
  'a draft of the first app is created and checked: its guesses alone are named, beside damaged values',
  async (t) => {
    const draft = await adopted(t, connections(t.context.database), '--schema', 'app');
    const { resources, output, folder } = draft;
    t.deepEqual([...resources.keys()], ['installaties', 'klanten', 'logboeken', 'werkbonnen']);
    t.like(resources.get('installaties'), { idType: 'uuid', version: 'version', auditEntity: 'installatie' });
    t.like(resources.get('klanten')?.fields.naam, { codec: 'aes-256-gcm' });
    t.deepEqual(
      resources.get('werkbonnen')?.order.map(({ column }) => column),
      ['datum', 'id'],
    );
    const parts = {
      handelingen: { view: 'gateway.werkbonnen_sync_handelingen', idType: 'uuid' },
      uren: { view: 'gateway.werkbonnen_sync_uren', idType: 'uuid' },
    };
    t.deepEqual(resources.get('werkbonnen')?.sync, { xid: 'row_xid', parts, appendOnly: null });
    t.like(resources.get('logboeken')?.sync, { parts: {}, appendOnly: { horizonHours: 72 } });
    t.deepEqual(Object.keys(resources.get('werkbonnen')?.fields ?? {}).slice(-2), ['handelingen', 'uren']);
    t.false(readFileSync(join(folder, 'sql/views/werkbonnen.sql'), 'utf8').includes('t.handtekening'));
    t.regex(output, /email, telefoon \(personal data, by the name\)/);
    const findings = await wrong(t, draft);
    t.deepEqual(findings.map(({ level, code, object }) => [level, code, object]).sort(), [
      ['warning', 'open_points', 'klanten'],
      ['warning', 'values', 'klanten'],
    ]);
    t.regex(findings[0]?.detail ?? '', /^\/fields\/land\/description: .*; the definition is .*klanten\.json\.$/);
  },
);

test.serial(
  'a draft of the second app opens its sealed customers with the keys at hand, and check finds only damaged values',
  async (t) => {
    const now = new Date('2026-11-21T12:00:00Z');
    const keys = Object.fromEntries(Object.entries(shared.keys).map(([id, key]) => [id, Buffer.from(key, 'base64')]));
    const settings = await newDatabase(t, 'second', async (client) => {
      await client.query(readFileSync(join(projectRoot, 'sql/apps/second/schema.sql'), 'utf8'));
      await seed(client, apps.second, { rows: 'small', keys, now });
    });
    const draft = await adopted(t, settings, '--schema', 'fieldops', '--write', 'assets');
    const { resources, folder } = draft;
    t.deepEqual([...resources.keys()], ['activity', 'assets', 'customers', 'work-orders']);
    const customers = resources.get('customers');
    t.like(customers, { idType: 'bigint', auditEntity: 'Customer' });
    t.like(customers?.codecs.sealed, {
      layout: ['tag16', 'nonce12', 'data'],
      keyId: { column: 'vault_key' },
      aad: 'customer:{id}',
    });
    t.deepEqual(
      Object.keys(customers?.fields ?? {}).sort(),
      words(`
      address createdAt id name registration updatedAt`),
    );
    t.like(resources.get('activity')?.fields.diff, { clean: 'audit-diff', diff: { old: 0, new: 1 } });
    t.regex(readFileSync(join(folder, 'sql/views/assets.sql'), 'utf8'), /\n {2}where t\.deleted_at is null;\n/);
    t.like(resources.get('activity')?.sync, { appendOnly: { horizonHours: 72 } });
    t.like(resources.get('assets')?.sync, { xid: 'row_xid', parts: {}, appendOnly: null });
    t.like(resources.get('assets')?.write, {
      ids: 'database',
      onChange: { lock_version: 'increment', updated_at: 'now' },
      audit: { created: 'create', changed: 'update' },
    });
    const findings = await wrong(t, draft);
    t.deepEqual(
      findings.map(({ level, code, object }) => [level, code, object]),
      [['warning', 'values', 'customers']],
    );
    t.regex(findings[0]?.detail ?? '', /^[/]fields[/]name: \d of \d+ values /);
  },
);

test.serial(
  'names in other letters are quoted and shown in small ones, and a key of several columns is read without those of the workspace and the record',
  async (t) => {
    const settings = await newDatabase(t, 'shop', (client) => client.query(shop));
    const draft = await adopted(t, settings, '--schema', 'Shop Floor', '--write', 'Orders');
    const { folder, resources, run } = draft;
    const orders = resources.get('orders');
    t.deepEqual(
      Object.keys(orders?.fields ?? {}),
      words(`
      id createdAt order remarkText totalPrice default rowVersion line`),
    );
    t.like(orders?.write, {
      ids: 'database',
      audit: { changed: 'update', diff: { field: 'field', old: 'from', new: 'to' } },
    });
    t.like(orders?.fields.remarkText, { write: { auditName: 'remarkText' } });
    t.like(orders?.sync?.parts, { line: { view: 'gateway.orders_sync_line', idType: 'bigint' } });
    t.deepEqual(
      resources.get('change-log')?.order.map(({ column }) => column),
      ['happened_at', 'id'],
    );
    t.regex(readFileSync(join(folder, 'sql/views/tokens.sql'), 'utf8'), /"userNo" as id, "e-mail" as email/);
    t.regex(draft.output, /left out: Secret \(secrets, by the name\)/);
    t.deepEqual(await wrong(t, draft), []);
    const proposal = join(folder, 'sql/views/indexes/orders_list.sql');
    writeFileSync(proposal, readFileSync(proposal, 'utf8').replace(', "createdAt"', ''));
    const again = await run('migrate', '--views', join(folder, 'sql/views'), '--indexes');
    t.is(again.code, 1);
    t.regex(
      again.stderr,
      /^The index gateway_orders_list on Shop Floor\.Orders exists with other columns, .* drop it, or give the proposal another name\./,
    );
  },
);

test.serial('adopt overwrites no file, and names those that are there', async (t) => {
  const folder = emptyFolder(t);
  const settings = connections(t.context.database);
  const args = ['adopt', '--schema', 'app', '--out', folder];
  t.is((await commandLine(args, settings)).code, 0);
  const file = join(folder, 'sql/views/klanten.sql');
  writeFileSync(file, '-- mine');
  rmSync(join(folder, 'sql/views/werkbonnen.sql'));
  const { code, stderr } = await commandLine(args, settings);
  t.is(code, 1);
  t.regex(stderr, /^Nothing was written, because adopt overwrites no file\. .*sql\/views\/klanten\.sql/);
  t.is(readFileSync(file, 'utf8'), '-- mine');
  t.false(existsSync(join(folder, 'sql/views/werkbonnen.sql')));
  const spaced = join(folder, "Anna's draft");
  const { stdout } = await commandLine(['adopt', '--schema', 'app', '--out', spaced], settings);
  const quoted = `'${folder}/Anna'\\''s draft`;
  t.true(stdout.includes(`migrate --views ${quoted}/sql/views'\n`), stdout);
  t.true(stdout.includes(`RESOURCES_DIR=${quoted}/config/resources' `), stdout);
});

test.serial('a schema that cannot be adopted is refused in a plain sentence, and nothing is written', async (t) => {
  const settings = await newDatabase(t, 'refused', (client) => client.query(shop));
  const folder = emptyFolder(t);
  const stranger = urlAs(settings.adminUrl as string, 'gateway_reader');
  const cases: [string[], Partial<Settings>, number, RegExp][] = [
    [
      ['--schema', 'none'],
      settings,
      1,
      /^There is no table in a schema "none"\. Schemas with tables: Shop Floor, lonely\./,
    ],
    [['--schema', 'bare'], settings, 1, /^There is no table in a schema "bare"\./],
    [['--schema', 'lonely'], settings, 1, /divides its rows among workspaces: .*--tenant COLUMN; docs\/adapting\.md /],
    [
      ['--schema', 'Shop Floor', '--write', 'nothing'],
      settings,
      1,
      /^--write names no table that becomes a resource: nothing\./,
    ],
    [
      ['--schema', 'Shop Floor', '--tenant', 'nothing'],
      settings,
      1,
      /^No table of "Shop Floor" has the column "nothing"/,
    ],
    [
      ['--schema', 'Shop Floor'],
      { ...settings, adminUrl: stranger },
      1,
      /permission denied for schema Shop Floor .*Give the URL of a role that may do this\./,
    ],
    [[], settings, 2, /^Give --schema NAME/],
  ];
  for (const [args, given, code, message] of cases) {
    const result = await commandLine(['adopt', ...args, '--out', folder], given);
    t.is(result.code, code, args.join(' '));
    t.regex(result.stderr, message);
  }
  t.deepEqual(readdirSync(folder), []);
});
