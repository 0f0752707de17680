#!/usr/bin/env node
import { type Command, print, printText, program, UsageError } from './cli/command.js';
import { asksForHelp, printHelp, runProgram, type Usage } from './cli/program.js';
import { meantBy } from './nearest-name.js';
import { projectText } from './paths.js';

interface Entry {
  /** One line for the list of commands. */
  readonly summary: string;
  /** Imports the command only when it is called: `--version` needs no database driver. */
  load(): Promise<Command>;
}

const commands: Readonly<Record<string, Entry>> = {
  serve: { summary: 'Run the gateway', load: async () => (await import('./cli/serve.js')).serve },
  check: {
    summary: 'Say whether the databases fit the gateway, and what is wrong',
    load: async () => (await import('./cli/check.js')).check,
  },
  adopt: {
    summary: 'Draft views and definitions for the schema of an app',
    load: async () => (await import('./cli/adopt.js')).adoptCommand,
  },
  migrate: {
    summary: "Bring the gateway's schema in the database up to date",
    load: async () => (await import('./cli/migrate.js')).migrateCommand,
  },
  views: {
    summary: "Drop and create the views around changes of the app's tables",
    load: async () => (await import('./cli/migrate.js')).viewsCommand,
  },
  docs: {
    summary: 'Write the documentation page of the API to a file',
    load: async () => (await import('./cli/docs.js')).docsCommand,
  },
  tokens: {
    summary: 'Create, list, rotate and revoke access tokens',
    load: async () => (await import('./cli/tokens.js')).tokens,
  },
};

async function main(args: readonly string[]): Promise<number> {
  const [first = '--help', ...rest] = args;
  if (first === '--version') return version();
  const isHelp = ['--help', '-h', 'help'].includes(first);
  if (isHelp && rest.length === 0) return help();
  const [name = '', ...others] = isHelp ? rest : args;
  const entry = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (entry === undefined) throw unknown(name);
  if (isHelp || asksForHelp(others)) return printHelp(usageOf(name));
  return (await entry.load())(others);
}

function usageOf(command: string): Usage {
  return { called: `${program} ${command}`, help: `config/help/${command}.txt` };
}

function unknown(name: string): UsageError {
  if (name.startsWith('-'))
    return new UsageError(`There is no option "${name}"${meantBy(name, ['--help', '--version'])}`);
  return new UsageError(`There is no command "${name}"${meantBy(name, Object.keys(commands))}`);
}

function help(): number {
  const lines = Object.entries(commands).map(([name, { summary }]) => `  ${name.padEnd(9)} ${summary}`);
  printText(`Usage: ${program} COMMAND [options]

Commands:
${lines.join('\n')}

Options:
  --help     This text; behind a command, as \`help COMMAND\`, the options of that command
  --version  Version of the gateway

Exit codes: 0 success, 1 error, 2 usage error or unusable settings.
Settings come from the environment; config/settings.schema.json describes each.`);
  return 0;
}

function version(): number {
  const { version } = JSON.parse(projectText('package.json')) as { version: string };
  print(version);
  return 0;
}

const [called = ''] = process.argv.slice(2);
void runProgram(
  () => main(process.argv.slice(2)),
  Object.hasOwn(commands, called) ? usageOf(called) : { called: program, help: '' },
);
