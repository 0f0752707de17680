import type pg from 'pg';
import { readProject } from '../../base/paths.js';
import { runInTransaction, type SqlFile } from './sql-files.js';

type States = Readonly<Record<string, Readonly<Record<'text' | 'owner' | 'privileges', unknown>>>>;

/** Statements that can run again over existing objects. The others made rows, roles and schemas, and stay as they are. */
const repeatableForms: readonly (readonly [RegExp, (statement: string) => string])[] = [
  [/^create (function|view) /, (statement) => statement.replace(/^create /, 'create or replace ')],
  [
    /^create policy (\S+) on (\S+)/,
    (statement) =>
      `${statement.replace(/^create policy (\S+) on (\S+).*/s, 'drop policy if exists $1 on $2')};\n${statement}`,
  ],
  [/^(grant|revoke|alter (function|view|table)|set local) /, (statement) => statement],
];

const statesSql = `select gateway.states_of($1) || jsonb_build_object('schema gateway', jsonb_build_object('privileges', array(
    select concat_ws(' ', grantee::regrole, privilege_type) from aclexplode(nspacl) order by 1))) as states
  from pg_namespace where nspname = 'gateway'`;

/** Makes functions, views, policies, privileges and owners of core again. Returns a sentence for each object that changed. */
export async function repairCore(client: pg.Client, files: readonly SqlFile[]): Promise<string[]> {
  const { rows } = await client.query<{ objects: string[] }>(
    `select objects from gateway.applied_files where root = 'core' and digest is not null`,
  );
  const objects = rows[0]?.objects ?? [];
  const readStates = async (): Promise<States> => (await client.query(statesSql, [objects])).rows[0].states;
  const isPassing = ({ code = '' }) => /^(55P03|40P01|XX000)$/.test(code);
  return runInTransaction(client, { lockMs: 1000, pauseMs: 500, attempts: 30, isPassing }, async () => {
    const statements = files.flatMap(({ sql }) => splitStatements(sql)).flatMap(makeRepeatable);
    const stateFunctions = statements.filter((statement) => / function gateway[.]states_of/.test(statement));
    for (const statement of stateFunctions) await client.query(statement); // the last run lists the changes of the others
    const before = await readStates();
    const quoted = objects.map((object) => `'${object.replaceAll("'", "''")}'`).join(', ');
    await client.query(readProject('sql/migrate/as-new.sql').replaceAll('{objects}', () => quoted));
    for (const statement of statements) await client.query(statement);
    const after = await readStates();
    return Object.keys(after).flatMap((object) => {
      const pieces = (['text', 'owner', 'privileges'] as const).filter(
        (piece) => JSON.stringify(before[object]?.[piece]) !== JSON.stringify(after[object]?.[piece]),
      );
      const change = before[object] ? pieces.join(', ') : 'it was gone';
      return pieces.length === 0 ? [] : [`made again: ${object.replaceAll('pg_catalog.', '')} (${change})`];
    });
  });
}

function makeRepeatable(statement: string): string[] {
  return repeatableForms.flatMap(([form, change]) => (form.test(statement) ? [change(statement)] : []));
}

/** Splits at each semicolon that ends a line outside of a body in dollar quotes. */
function splitStatements(sql: string): string[] {
  const pieces = sql.replaceAll(/^--.*\n/gm, '').split('$$');
  const separated = pieces
    .map((piece, i) => (i % 2 === 0 ? piece.replaceAll(/;[ \t]*(--[^\n]*)?\n/g, '\0') : piece))
    .join('$$');
  return separated.split('\0').flatMap((statement) => statement.trim() || []);
}
