import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { projectRoot } from '../src/base/paths.js';

// The manifest of the package that npm packs. The program has its libraries in itself, so that an installation needs no other package;
// package.json names them as dependencies, so that scanners see them. `prepack` takes them out of the packed manifest, `postpack`
// (--restore) puts the project's own manifest back. `prepublishOnly` (--publishable, also of the package in pull/) refuses a release
// that names no publisher.

const manifest = join(projectRoot, 'package.json');
const original = join(projectRoot, 'dist/package.json.original');

const read = (file: string): Record<string, unknown> =>
  JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>;

/** Fields that only the publisher of a release can know. */
const ofPublisher = ['repository', 'homepage', 'bugs'] as const;

function pack(): void {
  writeFileSync(original, readFileSync(manifest));
  const { dependencies, devDependencies, scripts, workspaces, allowScripts, ...packed } = read(manifest);
  writeFileSync(`${manifest}.new`, `${JSON.stringify(packed, null, 2)}\n`);
  renameSync(`${manifest}.new`, manifest);
}

function restore(): void {
  if (!existsSync(original)) return;
  writeFileSync(manifest, readFileSync(original));
  rmSync(original);
}

function assertPublishable(): void {
  const named = read(join(process.cwd(), 'package.json')); // npm runs a script in the folder of its package
  const missing = ofPublisher.filter((field) => named[field] === undefined);
  if (missing.length === 0) return;
  process.stderr.write(
    `package.json lacks ${missing.join(', ')}: set them to the publisher's before a public release (docs/contribute/release.md).\n`,
  );
  process.exitCode = 1;
}

const [mode = '--pack'] = process.argv.slice(2);
const modes: Readonly<Record<string, () => void>> = {
  '--pack': pack,
  '--restore': restore,
  '--publishable': assertPublishable,
};
(modes[mode] as () => void)();
