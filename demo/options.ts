import { once } from 'node:events';
import { createServer } from 'node:net';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { projectRoot } from '../src/base/paths.js';
import { Failure, parseWholeNumber, UsageError } from '../src/cli/command.js';
import { parsePorts } from '../src/cli/serve.js';
import { loadSettings, type Settings } from '../src/settings.js';
import { type AppName, apps, isAppName } from './seed/apps.js';

/** The options of `demo`, parsed. */
export interface DemoOptions {
  /** Name of the reference app. */
  readonly app: AppName;
  readonly dir: string | undefined;
  readonly rows: string | undefined;
  readonly replicas: number;
  readonly readyFile: string | undefined;
  readonly settings: Settings;
  /** Options of `serve`. */
  readonly args: readonly string[];
}

/** The command line of `demo`. Throws UsageError. */
export function parseOptions(args: readonly string[]): DemoOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      port: { type: 'string' },
      'ops-port': { type: 'string' },
      replicas: { type: 'string', default: '1' },
      app: { type: 'string', default: 'first' },
      rows: { type: 'string' },
      dir: { type: 'string' },
      'ready-file': { type: 'string' },
    },
  });
  const { rows, dir, 'ready-file': readyFile } = values;
  if (rows !== undefined && rows !== 'small' && rows !== 'large' && !/^[1-9]\d{0,6}$/.test(rows)) {
    throw new UsageError(`--rows must be small, large or a number from 1 to 9999999, not "${rows}".`);
  }
  const { app } = values;
  if (!isAppName(app)) throw new UsageError(`--app must be ${Object.keys(apps).join(' or ')}, not "${app}".`);
  const given = parsePorts(values);
  const chosen = Object.entries({ '--port': given.port, '--ops-port': given.opsPort });
  return {
    app,
    dir: dir === undefined ? undefined : resolve(dir),
    rows,
    replicas: parseWholeNumber('--replicas', values.replicas, 1, 8),
    readyFile: readyFile === undefined ? undefined : resolve(readyFile),
    settings: loadSettings(demoEnvironment(), given),
    args: chosen.flatMap(([option, value]) => (value === undefined ? [] : [option, String(value)])),
  };
}

/**
 * This process's environment without the settings that the demo decides: a secret may be set by itself or by the name of its file, not
 * both.
 */
export function demoEnvironment(): NodeJS.ProcessEnv {
  const env: NodeJS.ProcessEnv = {
    ...process.env,
    CONFIG_FILE: process.env.CONFIG_FILE ?? join(projectRoot, 'demo/settings.json'),
  };
  for (const name of ['REPLICA_URLS', 'PRIMARY_URLS', 'ADMIN_URL', 'DATA_KEYS', 'WALL_KEY', 'RESOURCES_DIR']) {
    delete env[name];
    delete env[`${name}_FILE`];
  }
  return env;
}

/** Checks the gateway's ports before minutes of seeding: they must be free. */
export async function checkPorts({ host, port, opsHost, opsPort }: Settings): Promise<void> {
  for (const [address, number, option] of [
    [host, port, '--port'],
    [opsHost, opsPort, '--ops-port'],
  ] as const) {
    const server = createServer().listen(number, address);
    await once(server, 'listening').catch(({ code }: NodeJS.ErrnoException) => {
      const reason =
        code === 'EADDRINUSE' ? `Port ${number} is in use` : `Cannot listen on ${address}:${number} (${code})`;
      throw new Failure(`${reason}: name another with ${option}; ${option} 0 picks a free one.`);
    });
    await new Promise((closed) => server.close(closed));
  }
}
