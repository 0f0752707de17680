import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import type { Finding } from '../../src/check/finding.js';
import { adopted, newDatabase, shop, wrong } from '../support/adopted.js';
import { eventually, gatewayTest } from '../support/workspace.js';

// An app whose own policies divide its tables: they know nothing of the gateway, so they show it no row.

const test = gatewayTest();

const ownPolicies = `
  set search_path = "Shop Floor";
  alter table "Orders" enable row level security; alter table "Orders" force row level security;
  alter table "OrderLine" enable row level security;
  create policy own on "Orders" using ("CompanyId" = current_setting('shop.company', true));
  create policy present on "Orders" as restrictive using (not "isDeleted");
`;

test.serial(
  'the views of tables with row-level security of the app show the rows of the workspace and write them, by a policy of their own; without it check refuses them',
  async (t) => {
    const settings = await newDatabase(t, 'policies', (client) => client.query(shop + ownPolicies));
    const draft = await adopted(t, settings, '--schema', 'Shop Floor', '--write', 'Orders');
    t.regex(
      draft.output,
      /row_security\.sql: the restrictive policy present of "Shop Floor"\."Orders" holds for the views' owner, too/,
    );
    t.deepEqual(await wrong(t, draft), []);
    const policies = join(draft.folder, 'sql/views/row_security.sql');
    t.regex(readFileSync(policies, 'utf8'), /^create policy gateway on "Shop Floor"\."OrderLine" to current_user /m);
    const client = new pg.Client(settings.adminUrl as string);
    await client.connect();
    // A superuser sees all rows: another role owns the views, as where such a role runs `migrate`.
    await client
      .query(`grant usage on schema "Shop Floor" to gateway_owner; grant select on all tables in schema "Shop Floor" to gateway_owner;
        alter view records.orders owner to gateway_owner`)
      .finally(() => client.end());
    let detail = '';
    await eventually(t, 'check refuses the view', async () => {
      const { findings } = JSON.parse((await draft.run('check', '--json')).stdout) as { findings: Finding[] };
      detail = findings.find(({ level, object }) => level === 'refused' && object === 'gateway.orders')?.detail ?? '';
      return detail !== '';
    });
    t.regex(detail, /row-level security of .*"Shop Floor"\."Orders" hides rows: create a policy .* `to gateway_owner /);
  },
);

test.serial(
  'check says that row-level security hides the workspaces or the users from the owner of their views',
  async (t) => {
    const forced = `
      alter table "Companies" enable row level security; alter table "Companies" force row level security;
      create policy own on "Companies" using ("Id" = current_setting('shop.company', true));`;
    const settings = await newDatabase(t, 'forced', (client) => client.query(shop + forced));
    const draft = await adopted(t, settings, '--schema', 'Shop Floor');
    t.deepEqual(await wrong(t, draft), [], 'a superuser sees all rows');
    const client = new pg.Client(settings.adminUrl as string);
    await client.connect();
    await client
      .query(
        `grant select on "Shop Floor"."Companies" to gateway_owner; alter view gateway.workspaces owner to gateway_owner`,
      )
      .finally(() => client.end());
    let found: Finding[] = [];
    await eventually(t, 'check finds it', async () => {
      found = await wrong(t, draft);
      return found.length > 0;
    });
    t.deepEqual(
      found.map(({ level, code }) => [level, code]),
      [
        ['failed', 'workspaces'],
        ['failed', 'migrated'],
      ],
    );
    t.regex(found[0]?.detail ?? '', /^Row-level security hides rows of "Shop Floor"\."Companies" from gateway_owner, /);
  },
);
