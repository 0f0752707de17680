import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { findNewestManifest, hashSha256, verifyExports } from '../operate/export/verify.js';
import { ExportFailed, exportWorkspace } from '../operate/export/workspace-export.js';
import { loadSettings } from '../settings.js';
import { makeCommand, makeOptions, parseNames, printError, printLine, showProgress, UsageError } from './command.js';
import { readSettingsOfApp } from './required-settings.js';

export const exportCommand = makeCommand(
  {
    ...makeOptions('string', 'workspace', 'out', 'resources', 'from', 'to', 'sign', 'previous', 'verify', 'key'),
    server: { type: 'string', default: 'replica' },
    gzip: { type: 'boolean', default: false },
  },
  async ({ verify, key, server, workspace, out, resources = '', from, to, gzip, sign, previous }) => {
    if (verify !== undefined && key !== undefined) return verifyAll(verify, readKey(key, createPublicKey));
    if (verify !== undefined || key !== undefined) throw new UsageError('--verify and --key need each other.');
    if (workspace === undefined || out === undefined) throw new UsageError('export needs --workspace and --out.');
    if (server !== 'replica' && server !== 'primary') throw new UsageError('--server takes replica or primary.');
    if (previous !== undefined && sign === undefined) throw new UsageError('--previous needs --sign.');
    const parent = dirname(resolve(out));
    if (!existsSync(parent)) throw new ExportFailed(`There is no folder ${parent} for the export. Make it first.`);
    const findPrevious = () =>
      previous === undefined ? findNewestManifest(workspace, out) : hashSha256(readFileSync(previous));
    const signing = sign === undefined ? null : { key: readKey(sign, createPrivateKey), previous: findPrevious() };
    const days = { ...(from !== undefined && { from }), ...(to !== undefined && { to }) };
    const { onProgress, end } = makeProgressLine();
    const options = {
      workspace,
      out,
      resources: parseNames(resources),
      server,
      days,
      gzip,
      signing,
      onProgress,
    } as const;
    const manifest = await exportWorkspace(readSettingsOfApp(), options).finally(end);
    const { server: name, takenAt } = manifest.snapshot;
    printLine(`Workspace ${workspace} as of ${takenAt}, from ${name}:`);
    for (const { file, records, bytes } of manifest.files) printLine(`  ${file}: ${records} records, ${bytes} bytes`);
    printLine(`Written to ${out}, with manifest.json${signing ? ', signed' : ''}.`);
    return 0;
  },
);

function readKey(file: string, read: (pem: Buffer) => KeyObject): KeyObject {
  const pem = readFileSync(file);
  try {
    const key = read(pem);
    if (key.asymmetricKeyType === 'ed25519') return key;
  } catch {} // the message of such an error says less
  throw new ExportFailed(`${file} has no key of Ed25519 in PEM without a passphrase.`);
}

async function verifyAll(folder: string, key: KeyObject): Promise<number> {
  const settings = loadSettings(process.env);
  const compared = settings.replicaUrls === '' || settings.resourcesDir === '' ? null : settings;
  let sum = 0;
  const unproved = await verifyExports(folder, key, compared, ({ folder: path, sha256, manifest }, faults) => {
    printLine(`${path}, of ${manifest.snapshot.takenAt}, manifest ${sha256}: ${faults.length || 'no'} faults`);
    for (const fault of faults) printError(`${path}: ${fault}`);
    sum += faults.length;
  });
  for (const path of unproved) printError(`${path}: it has no manifest.json of an export, so nothing in it is proved.`);
  printLine(compared ? 'The records were compared with a replica.' : 'The records were compared with no database.');
  return sum + unproved.length === 0 ? 0 : 1;
}

function makeProgressLine() {
  let shownMs = 0;
  return {
    onProgress: (resource: string, records: number) => {
      if (performance.now() - shownMs < 100) return;
      shownMs = performance.now();
      showProgress(`${resource}: ${records} records`);
    },
    end: () => showProgress(''),
  };
}
