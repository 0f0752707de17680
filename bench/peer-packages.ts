import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { projectRoot } from '../src/paths.js';

/** Folder of a peer with its packages in it. They are installed when they are not there; throws when that fails. */
export function installPeer(name: 'fastify' | 'platformatic'): string {
  const home = join(projectRoot, 'bench/peers', name);
  if (existsSync(join(home, 'node_modules/.package-lock.json'))) return home;
  process.stderr.write(`  installing the packages of ${name}, which may take minutes …\n`);
  const npm = spawnSync('npm', ['ci', '--no-audit', '--no-fund'], { cwd: home, encoding: 'utf8' });
  if (npm.status !== 0) throw new Error(`npm ci failed: ${npm.error?.message ?? lastLine(npm.stderr)}`);
  return home;
}

function lastLine(text: string): string {
  return text.trim().split('\n').at(-1) ?? '';
}
