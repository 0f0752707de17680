import { execFileSync, spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { parse } from 'yaml';
import { projectRoot } from '../../src/base/paths.js';
import { output } from '../support/client-tools.js';
import { duckdbCopy } from '../support/pull/copy.js';
import { gatewayTest, type TestContext } from '../support/workspace.js';

// The package as its users get it: packed, installed into an empty folder, and used as its README says.

const test = gatewayTest();
const noNpm = spawnSync('npm', ['--version']).status === 0 ? '' : ' (skipped: npm fails on this machine)';

function commandsOf(readme: string, heading: string): string[] {
  const section = readme.split(`## ${heading}\n`)[1] ?? '';
  return /```\n([^`]*)```/.exec(section)?.[1]?.trim().split('\n') ?? [];
}

/** Installs the package; without a registry its dependencies are those of this clone. */
function install(t: ExecutionContext, command: string, cwd: string): void {
  const [program = '', ...args] = command.split(' ');
  const offline = ['--prefer-offline', '--no-audit', '--no-fund', '--fetch-retries=0'];
  if (spawnSync(program, [...args, ...offline], { cwd, timeout: 240_000 }).status === 0) return;
  t.log('npm could not install the dependencies: those of the clone are used.');
  const root = join(cwd, 'node_modules/workspace-data-pull');
  mkdirSync(root, { recursive: true });
  execFileSync('tar', ['-xzf', join(cwd, args.at(-1) as string), '--strip-components=1', '-C', root]);
  const { dependencies, bin } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  for (const name of Object.keys(dependencies)) {
    const at = join(cwd, 'node_modules', name);
    mkdirSync(dirname(at), { recursive: true });
    if (!existsSync(at)) symlinkSync(join(projectRoot, 'node_modules', name), at);
  }
  mkdirSync(join(cwd, 'node_modules/.bin'), { recursive: true });
  symlinkSync(join(root, bin['workspace-data-pull']), join(cwd, 'node_modules/.bin/workspace-data-pull'));
}

(noNpm ? test.serial.skip : test.serial)(`the packed package does all that its README says${noNpm}`, async (t) => {
  const { gateway, token, database } = t.context as TestContext;
  const at = mkdtempSync(join(tmpdir(), 'pull-packed-'));
  t.teardown(() => rmSync(at, { recursive: true }));
  const npm = ['pack', '--silent', '--pack-destination', at, '-w', 'workspace-data-pull'];
  execFileSync('npm', npm, { cwd: projectRoot });
  const [archive] = readdirSync(at) as [string];
  t.true(statSync(join(at, archive)).size < 200_000);
  const readme = execFileSync('tar', ['-xzOf', join(at, archive), 'package/README.md'], { encoding: 'utf8' });
  t.true(execFileSync('tar', ['-tzf', join(at, archive)], { encoding: 'utf8' }).includes('package/LICENSE'));
  for (const command of commandsOf(readme, 'Install')) install(t, command, at);
  writeFileSync(join(at, 'token'), token);
  const copied = `${database.name}_packed`;
  await database.primary.query(`create database ${copied}`);
  t.teardown(() => database.primary.query(`drop database if exists ${copied} with (force)`));
  const url = Object.assign(new URL(database.settings.adminUrl), { pathname: `/${copied}` }).href;
  const commands = commandsOf(readme, 'Use');
  t.true(commands.length >= 8);
  const script = commands
    .map((line) => line.replaceAll('https://data.example.com', gateway.url).replace(/postgres:\/\/\S+/, `'${url}'`))
    .join('\n');
  const printed = await output('/bin/sh', ['-ec', script], { cwd: at });
  t.regex(printed, /^Usage: workspace-data-pull/);
  t.true(statSync(join(at, 'export/werkbonnen.csv')).size > 0);
  const [row] = await duckdbCopy(join(at, 'copy.duckdb')).sql(
    'select count(*)::INTEGER as changes from logboeken_wijzigingen',
  );
  t.true(Number(row?.changes) > 0);
  const sources = parse(readFileSync(join(at, 'sources.yml'), 'utf8')) as { sources: { tables: DbtTable[] }[] };
  const orders = sources.sources[0]?.tables.find(({ name }) => name === 'werkbonnen');
  t.regex(orders?.config.loaded_at_query ?? '', /from "main".pull_status where resource = 'werkbonnen'$/);
  const tests = Object.fromEntries(orders?.columns.map(({ name, data_tests }) => [name, data_tests]) ?? []);
  t.deepEqual(tests.id, ['unique', 'not_null']);
  t.like((tests.installation_id as object[])[1], {
    relationships: { to: `source('workspace_data', 'installaties')`, field: '"id"' },
  });
  const hours = sources.sources[0]?.tables.find(({ name }) => name === 'werkbonnen_uren')?.columns[0]?.data_tests;
  t.true(JSON.stringify(hours).includes("source('workspace_data', 'werkbonnen')"));
  t.false(readFileSync(join(at, 'node_modules/workspace-data-pull/dist/main.js'), 'utf8').includes('../src/'));
});

interface DbtTable {
  readonly name: string;
  readonly config: { readonly loaded_at_query: string };
  readonly columns: readonly { readonly name: string; readonly data_tests?: readonly unknown[] }[];
}

test.serial('the changes of the log are a table by the variants of the document', async (t) => {
  const { client, gateway, token } = t.context as TestContext;
  const at = mkdtempSync(join(tmpdir(), 'pull-log-'));
  t.teardown(() => rmSync(at, { recursive: true }));
  writeFileSync(join(at, 'token'), token);
  const { data } = (await client.get('/logboeken?perPage=10000')).json<{ data: LogEntry[] }>();
  const args = ['--base', gateway.url, '--token-file', join(at, 'token'), '--to', join(at, 'log.duckdb')];
  await output(join(projectRoot, 'pull/bin/workspace-data-pull.js'), [...args, '--resources', 'logboeken']);
  const rows = await duckdbCopy(join(at, 'log.duckdb')).sql(
    'select logboekregel_id as id, position::INTEGER as position, veld, afgeschermd, oud::VARCHAR as oud, nieuw::VARCHAR as nieuw from logboeken_wijzigingen order by 1, 2',
  );
  const json = (value: unknown): string | null => (value == null ? null : JSON.stringify(value));
  const parsed = (text: unknown): string | null => (text === null ? null : json(JSON.parse(text as string)));
  const expected = data.flatMap(({ id, wijzigingen }) =>
    wijzigingen.map(({ veld, oud, nieuw, afgeschermd = null }, i) => ({
      id,
      position: i + 1,
      veld,
      afgeschermd,
      oud: json(oud),
      nieuw: json(nieuw),
    })),
  );
  t.true(expected.some(({ afgeschermd }) => afgeschermd === true) && expected.some(({ nieuw }) => nieuw !== null));
  t.deepEqual(
    rows.map(({ oud, nieuw, ...row }) => ({ ...row, oud: parsed(oud), nieuw: parsed(nieuw) })),
    expected.sort((a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : a.position - b.position)),
  );
});

interface LogEntry {
  readonly id: string;
  readonly wijzigingen: readonly { veld: string; oud?: unknown; nieuw?: unknown; afgeschermd?: boolean }[];
}
