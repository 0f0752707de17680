import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { urlAs } from '../../demo/cluster/passwords.js';
import { apps } from '../../demo/seed/apps.js';
import { loadResources } from '../../src/definition/load.js';
import {
  columnsOf,
  type Field,
  type LoggedAs,
  leaves,
  type Resource,
  type ResourceWrite,
} from '../../src/definition/resource.js';
import { app, appName } from '../support/app.js';
import { customerOf } from '../support/primary-side.js';
import { gatewayTest, shared, type TestContext } from '../support/workspace.js';
import { created } from '../support/writes.js';

// PostgreSQL itself refuses these to the gateway's writer, whatever the gateway sends. Every statement runs as that role.
const test = gatewayTest();
const denied = '42501'; // insufficient_privilege; also what a view's or policy's check gives
const checkOption = '44000'; // with_check_option_violation

/** The columns of the write view by their roles, from the definition. */
const columns = columnsByRole();

function columnsByRole() {
  const resource = loadResources(apps[appName].resourcesDir).find(({ name }) => name === 'installaties') as Resource;
  const { audit, ids, onChange } = resource.write as ResourceWrite;
  const log = (audit as LoggedAs).columns;
  const writable = leaves(resource).flatMap(({ field }) => (field.write ? [field.column] : []));
  const moved = Object.keys(onChange);
  return {
    log,
    moved,
    readOnly: ['workspace_id', ...columnsOf(resource)].filter((column) => ![...writable, ...moved].includes(column)),
    nameColumn: (resource.fields.naam as Field).column,
    /** The id in the list of inserted columns, where the gateway makes it. */
    made: ids === 'gateway' ? 'id, ' : '',
  };
}

/** Runs statements as gateway_writer for the first workspace; gives the SQLSTATE each failed with, or its row count. */
async function asWriter({ database }: TestContext, statements: readonly string[]): Promise<(string | number)[]> {
  const client = new pg.Client(urlAs(shared.primary, 'gateway_writer', database.name));
  await client.connect();
  const results: (string | number)[] = [];
  await client.query("select set_config('gateway.workspace_id', $1, false)", [database.workspaces[0]?.id]);
  for (const statement of statements) {
    await client.query('begin');
    results.push(
      await client.query(statement).then(
        ({ rowCount }) => rowCount ?? 0,
        ({ code }: { code: string }) => code,
      ),
    );
    await client.query('rollback');
  }
  await client.end();
  return results;
}

test('it can update no column outside the write scope, through the view or past it', async (t) => {
  const { client, database } = t.context;
  const { id } = await created(client, { naam: 'x', customerId: await customerOf(database) });
  const { readOnly, moved, nameColumn } = columns;
  t.true(readOnly.length > 5);
  const updates = readOnly.flatMap((column) =>
    ['gateway.installaties_write', 'gateway.installaties', app.installations].map(
      (relation) => `update ${relation} set ${column} = default where id = '${id}'`,
    ),
  );
  const elsewhere = ['gateway.installaties', app.installations].map(
    (relation) => `update ${relation} set ${nameColumn} = default where id = '${id}'`,
  );
  const outcomes = await asWriter(t.context, [...updates, ...elsewhere]);
  const allowed = [...updates, ...elsewhere].filter((_, i) => outcomes[i] !== denied && outcomes[i] !== '42703');
  t.deepEqual(allowed, [], 'a column of the view that the table has under another name is none, SQLSTATE 42703');
  const permitted = [nameColumn, ...moved].map(
    (column) => `update gateway.installaties_write set ${column} = ${column} where id = '${id}'`,
  );
  t.deepEqual(new Set(await asWriter(t.context, permitted)), new Set([1]));
});

test('it can insert no column outside the write scope', async (t) => {
  const { database } = t.context;
  const [workspace, customer] = [database.workspaces[0]?.id, await customerOf(database)];
  const { made, readOnly, moved, nameColumn } = columns;
  const insert = (more: string): string =>
    `insert into gateway.installaties_write (${made}workspace_id, customer_id, ${nameColumn}${more && `, ${more}`})
      values (${made && `'${randomUUID()}', `}'${workspace}', '${customer}', 'x'${more && ', default'})`;
  const refused = [...readOnly, ...moved].filter((column) => column !== 'id' && column !== 'workspace_id');
  t.deepEqual(new Set(await asWriter(t.context, refused.map(insert))), new Set([denied]));
  t.deepEqual(await asWriter(t.context, [insert('')]), [1]);
});

test('it sees and changes nothing of another workspace, and can put nothing into one', async (t) => {
  const { client, database } = t.context;
  const token = await database.token({ workspace: 1 });
  const [theirs, customer] = [database.workspaces[1]?.id, await customerOf(database, 1)];
  const { id } = await created(client, { naam: 'x', customerId: customer }, { token });
  const results = await asWriter(t.context, [
    `select from gateway.installaties_write where id = '${id}'`,
    `select from gateway.installaties where workspace_id = '${theirs}'`,
    `select from gateway.klanten where id = '${customer}'`,
    `select from gateway.idempotency where record_id = '${id}'`,
    `update gateway.installaties_write set ${columns.nameColumn} = 'y' where id = '${id}'`,
    `update gateway.idempotency set record = 'y' where record_id = '${id}'`,
  ]);
  t.deepEqual(results, [0, 0, 0, 0, 0, 0]);
  const insertions = await asWriter(t.context, [
    `insert into gateway.installaties_write (${columns.made}workspace_id, customer_id, ${columns.nameColumn})
      values (${columns.made && `'${randomUUID()}', `}'${theirs}', '${customer}', 'x')`,
    `insert into gateway.logboeken_write (workspace_id, ${columns.log.entity}, ${columns.log.entityId}, ${columns.log.action}, ${columns.log.actorType}) values ('${theirs}', 'x', '1', 'x', 'token')`,
    `insert into gateway.idempotency (workspace_id, token_id, key, fingerprint) values ('${theirs}', '${randomUUID()}', 'x', 'x')`,
  ]);
  t.deepEqual(insertions, [checkOption, checkOption, denied]);
});

test('it deletes nothing, and reads neither tokens, names of customers nor the log', async (t) => {
  const tables = [
    'gateway.installaties_write',
    'gateway.logboeken_write',
    'gateway.idempotency',
    'gateway.klanten',
    app.installations,
    'probe.logboeken',
  ];
  const refused = [
    ...tables.map((table) => `delete from ${table}`),
    'truncate gateway.idempotency',
    `truncate ${app.installations}`,
    'select created_at from gateway.klanten',
    'select * from gateway.klanten',
    'select id from probe.klanten',
    'select token_hash from gateway.api_tokens',
    "select * from gateway.find_token('x')",
    'select * from gateway.key_ids()',
    'select * from gateway.sample_workspaces()',
    'select * from gateway.logboeken',
    `select ${columns.log.entity} from gateway.logboeken_write`,
    'select * from gateway.token_owners',
    `update gateway.logboeken_write set ${columns.log.action} = 'x'`,
    'create table gateway.t ()',
    'create table public.t ()',
    'set role gateway_owner',
    "copy gateway.idempotency to program 'true'",
  ];
  const results = await asWriter(t.context, refused);
  t.deepEqual(
    refused.filter((_, i) => results[i] !== denied),
    [],
  );
});

test('a stored answer stays as it is: neither its key nor its content can be changed', async (t) => {
  const { client, database } = t.context;
  const { id } = await created(client, { naam: 'x', customerId: await customerOf(database) });
  const columns = ['workspace_id', 'token_id', 'key', 'fingerprint', 'created_at'];
  const updates = columns.map(
    (column) => `update gateway.idempotency set ${column} = ${column} where record_id = '${id}'`,
  );
  t.deepEqual(new Set(await asWriter(t.context, updates)), new Set([denied]));
  t.deepEqual(
    await asWriter(t.context, [
      `select from gateway.idempotency where record_id = '${id}'`,
      `update gateway.idempotency set record = 'forged', status = 200 where record_id = '${id}'`,
      `insert into gateway.idempotency (workspace_id, token_id, key, fingerprint, status, record)
        values ('${database.workspaces[0]?.id}', '${randomUUID()}', 'x', 'x', 201, 'forged')`,
    ]),
    [1, 0, denied],
  );
});
