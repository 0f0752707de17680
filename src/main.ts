#!/usr/bin/env node
import { getOwn } from './base/members.js';
import { suggest } from './base/nearest-name.js';
import { readVersion } from './base/paths.js';
import { type Command, printLine, printText, program, UsageError } from './cli/command.js';
import { printHelp, runProgram } from './cli/program.js';

/** Each command is imported only when it is called: `--version` needs no database driver. */
const commands: Readonly<Record<string, readonly [summary: string, load: () => Promise<Command>]>> = {
  serve: ['Run the gateway', async () => (await import('./cli/serve.js')).serveCommand],
  check: [
    'Say whether the databases fit the gateway, and what is wrong',
    async () => (await import('./cli/check.js')).checkCommand,
  ],
  adopt: [
    'Draft views and definitions for the schema of an app',
    async () => (await import('./cli/adopt.js')).adoptCommand,
  ],
  migrate: [
    "Bring the gateway's schema in the database up to date",
    async () => (await import('./cli/migrate.js')).migrateCommand,
  ],
  views: [
    "Drop and create the views around changes of the app's tables",
    async () => (await import('./cli/migrate.js')).viewsCommand,
  ],
  export: [
    'Write the records of a workspace to files, all of one moment',
    async () => (await import('./cli/export.js')).exportCommand,
  ],
  docs: ['Write the documentation page of the API to a file', async () => (await import('./cli/docs.js')).docsCommand],
  register: ['Say who read which personal data', async () => (await import('./cli/register.js')).runRegister],
  tokens: ['Create, list, rotate and revoke access tokens', async () => (await import('./cli/tokens.js')).runTokens],
};

const [first = '--help', ...words] = process.argv.slice(2);
const isHelp = ['--help', '-h', 'help'].includes(first);
const [name = '', ...args] = isHelp ? words : [first, ...words];
const [, load] = getOwn(commands, name) ?? [];
const usage = load ? { called: `${program} ${name}`, help: `config/help/${name}.txt` } : { called: program, help: '' };

void runProgram(usage, args, async () => {
  if (load) return isHelp ? printHelp(usage) : (await load())(args);
  if (first === '--version') printLine(readVersion());
  else if (isHelp && words.length === 0) printList();
  else if (name.startsWith('-'))
    throw new UsageError(`There is no option "${name}"${suggest(name, ['--help', '--version'])}`);
  else throw new UsageError(`There is no command "${name}"${suggest(name, Object.keys(commands))}`);
  return 0;
});

function printList(): void {
  const lines = Object.entries(commands).map(([each, [summary]]) => `  ${each.padEnd(9)} ${summary}`);
  printText(`Usage: ${program} COMMAND [options]

Commands:
${lines.join('\n')}

Options:
  --help     This text; behind a command, as \`help COMMAND\`, the options of that command
  --version  Version of the gateway

Exit codes: 0 success, 1 error, 2 usage error or unusable settings.
Settings come from the environment; config/settings.schema.json describes each.`);
}
