import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { readSqlFiles } from '../../src/migrate/sql-files.js';
import { statementsOf } from '../../src/migrate/sql-statements.js';
import { sourcesIn } from '../support/sources.js';

test('a semicolon in a comment, a string, a name, a dollar quote or a body ends no statement', (t) => {
  const statements = [
    `select ';', 'it''s; so', e'it\\'s; so', E'\\\\', ";", "a"";", $1 /* ; /* ; */ ; */ -- ;
      from "x;y"`,
    `do $$ begin perform 1; end $$`,
    `do $body$ select $$ ; $$; $body$`,
    `create function f() returns int language sql begin atomic select case when true then 1 end; select 2; end`,
    `CREATE OR REPLACE PROCEDURE p() LANGUAGE sql BEGIN ATOMIC INSERT INTO t VALUES (1); END`,
    `create rule r as on insert to t do instead (select 1; select 2)`,
    `create view v as select case when a then 1 end, tag$x from "begin"`,
    'begin',
  ];
  const found = statementsOf(`-- a comment; about it\n${statements.join(';\n\n /* ; */ ')}`);
  t.deepEqual(
    found.map(({ text }) => text),
    statements,
  );
});

test('each statement has the line in which it begins, whatever stands before it', (t) => {
  const sql = '-- one\n\nselect 1; select 2\n;\n/* four\nfive */ select\n3';
  t.deepEqual(statementsOf(sql), [
    { text: 'select 1', line: 3 },
    { text: 'select 2', line: 3 },
    { text: 'select\n3', line: 6 },
  ]);
  t.deepEqual(statementsOf('-- nothing\n;;\n'), []);
  t.is(statementsOf("select 'open").length, 1);
});

test('the statements of every shipped file are the file without comments between them', (t) => {
  for (const { path, text } of [...sourcesIn('sql/core', '.sql'), ...sourcesIn('sql/views', '.sql')]) {
    const statements = statementsOf(text);
    t.true(statements.length > 0, path);
    for (const { text: statement, line } of statements) {
      t.regex(statement, /^(create|alter|grant|revoke|do|comment|insert|drop|set)\b/i, path);
      t.true(text.split('\n')[line - 1]?.includes(statement.split('\n')[0] as string), path);
    }
  }
});

test('a file of the views whose name does not count is refused, not passed over', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'views-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  for (const name of ['klanten.sql', '._klanten.sql', 'notes.txt']) writeFileSync(join(folder, name), 'select 1');
  const names = () => readSqlFiles('views', folder).map(({ name }) => name);
  t.deepEqual(names(), ['klanten.sql']);
  writeFileSync(join(folder, 'work.orders.sql'), 'select 1');
  t.throws(names, { message: /not named such as klanten\.sql, .*: work\.orders\.sql\. Rename them/ });
});
