import { urlAs } from '../../demo/cluster/passwords.js';
import { EventLoop } from '../../src/base/flow/event-loop.js';
import { Connection, StatementNames } from '../../src/postgres/connection.js';
import { prepareSql, type Statement, type WorkspaceId } from '../../src/postgres/statement.js';
import { makeWorkspaceMac } from '../../src/postgres/workspace-mac.js';
import { app } from '../support/app.js';
import { listNames, type Page, records } from '../support/lists.js';
import { wallKey } from '../support/walls.js';
import { gatewayTest, shared } from '../support/workspace.js';

const test = gatewayTest();

for (const list of ['klanten', 'installaties', 'werkbonnen']) {
  test(`${list}: an id of another workspace is answered exactly like an unknown id`, async (t) => {
    const { client, database } = t.context;
    const other = await database.token({ workspace: 1 });
    const [record] = (await client.get(`/${list}?perPage=1`, { token: other })).json<Page>().data;
    t.is((await client.get(`/${list}/${record?.id}`, { token: other })).status, 200);
    const [foreign, unknown] = [
      await client.get(`/${list}/${record?.id}`),
      await client.get(`/${list}/${app.unknownId}`),
    ];
    t.is(foreign.status, 404);
    t.is(foreign.text.replace(/"requestId":"[^"]*"/, ''), unknown.text.replace(/"requestId":"[^"]*"/, ''));
    t.deepEqual(Object.keys(foreign.headers).sort(), Object.keys(unknown.headers).sort());
  });
}

for (const list of listNames) {
  test(`${list}: two workspaces share no record, also when both read at the same time over the same connections`, async (t) => {
    const { client, database } = t.context;
    const tokens = [await database.token({ workspace: 0 }), await database.token({ workspace: 1 })];
    const read = (i: number) => records(client, `/${list}?perPage=300`, { token: tokens[i % 2] as string });
    const all = await Promise.all(Array.from({ length: 6 }, (_, i) => read(i)));
    const [first, second] = all.slice(0, 2).map((list) => new Set(list.map(({ id }) => id))) as [
      Set<string>,
      Set<string>,
    ];
    t.true(first.size > second.size && second.size > 0);
    t.true([...second].every((id) => !first.has(id)));
    for (const [i, list] of all.entries()) t.deepEqual(new Set(list.map(({ id }) => id)), i % 2 === 0 ? first : second);
  });
}

test('a connection carries no workspace from a statement to the next, and a statement without the guard sees no row', async (t) => {
  const { database } = t.context;
  const connection = await Connection.open(urlAs(shared.replicas[0] as string, 'gateway_reader', database.name), {
    connectTimeoutMs: 5000,
    loop: new EventLoop(),
    names: new StatementNames(true),
    session: [],
    computeMac: makeWorkspaceMac(wallKey),
  });
  const rows: (readonly (string | null)[])[] = [];
  const run = (statement: Statement, workspace: string | null) =>
    new Promise<void>((resolve, reject) =>
      connection.start(
        { statement, workspace: workspace as WorkspaceId, values: {} },
        (row) => rows.push(row.getTexts()),
        (error) => (error ? reject(error) : resolve()),
      ),
    );
  const count = prepareSql('count', 'select count(*) > 0 from gateway.klanten');
  const peek = prepareSql('peek', "select nullif(current_setting('gateway.workspace_id', true), '')");
  try {
    // Pipelined: all three are on their way before the first is answered.
    await Promise.all([run(count, database.workspaces[0]?.id as string), run(count, null), run(peek, null)]);
    t.deepEqual(rows, [['t'], ['f'], [null]]);
  } finally {
    connection.close();
  }
});
