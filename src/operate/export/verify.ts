import { createHash, type KeyObject, verify } from 'node:crypto';
import { createReadStream, existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { pipeline } from 'node:stream';
import { createGunzip } from 'node:zlib';
import type { Settings } from '../../settings.js';
import { readBatches } from './records.js';
import type { Manifest } from './workspace-export.js';
import { chooseResources, ExportFailed, manifestName, parsePeriod, runInSnapshot } from './workspace-export.js';

const signatureName = `${manifestName}.sig`;
/** A party that has the manifest makes time stamps of it (docs/operate/evidence.md). */
const besideFiles = ['', '.sig', '.tsq', '.tsr', '.ots'].map((ending) => `${manifestName}${ending}`);

interface Export {
  readonly folder: string;
  readonly sha256: string;
  readonly manifest: Manifest;
}

/** Lists the exports in the folder, or the folder itself; the oldest comes first. */
function listExports(folder: string): Export[] {
  const itself = readExport(folder);
  if (itself !== null) return [itself];
  return listFolders(folder)
    .flatMap((inner) => readExport(inner) ?? [])
    .sort((a, b) => Date.parse(a.manifest.snapshot.takenAt) - Date.parse(b.manifest.snapshot.takenAt));
}

/** Leaves out hidden folders, to which a running export writes, files, and dangling links. */
function listFolders(folder: string): string[] {
  const names = readdirSync(folder).filter((name) => !name.startsWith('.'));
  return names.map((name) => join(folder, name)).filter(isFolder);
}

/** Throws ExportFailed for a folder that this user cannot read, as lost+found: with the newest export in it, a chain would fork. */
function isFolder(path: string): boolean {
  try {
    readdirSync(path);
    return true;
  } catch (error) {
    if (!['EACCES', 'EPERM'].includes((error as NodeJS.ErrnoException).code ?? '')) return false;
    const remedy = 'Use a folder for exports alone, or sign with --previous';
    throw new ExportFailed(`${path} cannot be read, and could hold an export. ${remedy}.`);
  }
}

/** Is null if the folder has no manifest of an export; the manifest of another program has another form. */
function readExport(folder: string): Export | null {
  const path = join(folder, manifestName);
  if (!existsSync(path)) return null;
  const text = readFileSync(path);
  const manifest = parseJsonOrNull(text.toString()) as Manifest | null | undefined;
  if (!Array.isArray(manifest?.files) || !manifest.snapshot) return null;
  return { folder, manifest, sha256: hashSha256(text) };
}

/** Lists folders that look like an export, and have no manifest of one: nothing in them is proved. */
function listUnproved(folder: string): string[] {
  const looksLikeExport = (name: string): boolean => name.startsWith(manifestName) || /\.ndjson(\.gz)?$/.test(name);
  return [folder, ...listFolders(folder)].filter(
    (path) => readExport(path) === null && readdirSync(path).some(looksLikeExport),
  );
}

export const hashSha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

function parseJsonOrNull(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Returns SHA-256 of the newest manifest of the workspace in the folder of `out`, or null. */
export function findNewestManifest(workspace: string, out: string): string | null {
  const folder = dirname(resolve(out));
  const broken = listUnproved(folder).find((path) => existsSync(join(path, signatureName)));
  if (broken !== undefined) throw new ExportFailed(`${join(broken, manifestName)} is broken.`);
  const chain = listExports(folder).filter(({ manifest }) => manifest.workspace === workspace);
  return chain.filter(({ manifest }) => manifest.previous !== undefined).at(-1)?.sha256 ?? null;
}

/** Hands each export over with its faults as sentences; the records are compared if `settings` name a database. Returns unproved folders. */
export async function verifyExports(
  folder: string,
  key: KeyObject,
  settings: Settings | null,
  onExport: (one: Export, faults: string[]) => void,
): Promise<string[]> {
  const all = listExports(folder);
  if (all.length === 0)
    throw new ExportFailed(`Neither ${folder} nor a folder in it has a ${manifestName} of an export.`);
  for (const signedExport of all)
    onExport(signedExport, [
      ...listSignatureFaults(signedExport, key),
      ...(signedExport.folder === folder ? [] : listChainFaults(signedExport, all)),
      ...(await listFileFaults(signedExport)),
      ...(settings ? await listRecordFaults(signedExport, settings) : []),
    ]);
  return all[0]?.folder === folder ? [] : listUnproved(folder);
}

function listSignatureFaults({ folder }: Export, key: KeyObject): string[] {
  const [text, signature] = [manifestName, signatureName].map((name) => join(folder, name)) as [string, string];
  if (!existsSync(signature)) return [`${signatureName} is missing.`];
  const isSigned = verify(null, readFileSync(text), key, readFileSync(signature));
  return isSigned ? [] : [`${manifestName} was changed, or another key has signed it.`];
}

function listChainFaults({ folder, manifest: { workspace, previous } }: Export, all: readonly Export[]): string[] {
  const isKnown = (previous ?? null) === null || all.some(({ sha256 }) => sha256 === previous);
  const twin = all.find(
    ({ manifest, folder: other }) =>
      other !== folder && manifest.workspace === workspace && previous !== undefined && manifest.previous === previous,
  );
  return [
    ...(isKnown ? [] : [`The manifest before it is missing, with SHA-256 ${previous}.`]),
    ...(twin ? [`It has the same place in the chain as ${basename(twin.folder)}.`] : []),
  ];
}

async function listFileFaults({ folder, manifest: { files } }: Export): Promise<string[]> {
  const knownFiles = [...besideFiles, ...files.map(({ file }) => file)];
  const strangers = readdirSync(folder).filter((name) => !knownFiles.includes(name));
  const faults = strangers.map((name) => `${name} is not in the manifest.`);
  for (const { file, sha256, bytes } of files) {
    const path = join(folder, basename(file));
    const hash = createHash('sha256');
    if (!existsSync(path)) faults.push(`${file} is missing.`);
    else {
      for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer);
      if (hash.digest('hex') !== sha256)
        faults.push(`${file} was changed: it has ${statSync(path).size} bytes, and had ${bytes}.`);
    }
  }
  return faults;
}

/** Finds the first record of each file that differs from the database. */
async function listRecordFaults({ folder, manifest: { workspace, days, files } }: Export, settings: Settings) {
  const faults: string[] = [];
  const compiled = await chooseResources(settings, []);
  for (const { resource, file, definition } of files) {
    const path = join(folder, basename(file));
    const now = compiled.find((each) => each.resource.name === resource);
    if (now?.projectionHash !== definition)
      faults.push(`${file} is not compared with the database: the definition of ${resource} was another one.`);
    else if (existsSync(path)) {
      const period = parsePeriod(now, { timeZone: settings.timeZone, ...days });
      const difference = await runInSnapshot(settings, { workspace, server: 'replica' }, (snapshot) => {
        const exported = splitIntoLines(readBytes(path));
        const stored = splitIntoLines(readBatches(snapshot, now, workspace, period));
        const close = () => Promise.all([exported.return(undefined), stored.return(undefined)]);
        return findDifference(exported, stored).finally(close);
      });
      if (difference !== null) faults.push(`${file}, ${difference}.`);
    }
  }
  return faults;
}

/** Ends at the first byte that cannot be decompressed; the hash then differs. */
async function* readBytes(path: string): AsyncGenerator<Buffer> {
  const file = createReadStream(path);
  try {
    yield* path.endsWith('.gz') ? pipeline(file, createGunzip(), () => undefined) : file;
  } catch (error) {
    if (!/^Z_/.test((error as NodeJS.ErrnoException).code ?? '')) throw error;
  }
}

/** Decodes as Latin-1, which keeps each byte; a line of JSON has no other line break. */
async function* splitIntoLines(chunks: AsyncIterable<Buffer>): AsyncGenerator<string> {
  let last = '';
  for await (const chunk of chunks) {
    const lines = (last + chunk.toString('latin1')).split('\n');
    last = lines.pop() ?? '';
    yield* lines;
  }
  if (last !== '') yield last;
}

async function findDifference(file: AsyncIterator<string>, database: AsyncIterator<string>): Promise<string | null> {
  const next = async () => [(await file.next()).value, (await database.next()).value] as (string | undefined)[];
  for (let line = 1; ; line++) {
    const [exported, stored] = await next();
    if (exported === stored && stored === undefined) return null;
    if (exported === stored) continue;
    const [a, b] = [getLineId(exported), getLineId(stored)];
    const at = `line ${line}: the export`;
    if (a === b) return `${at} has record ${a} otherwise than the database`;
    const [nextExported, nextStored] = await next();
    if (nextStored === exported && nextExported !== stored) return `${at} lacks record ${b} of the database`;
    if (nextExported === stored && nextStored !== exported) return `${at} has record ${a}, which the database lacks`;
    return `${at} has record ${a} where the database has ${b}`;
  }
}

const getLineId = (line = ''): string =>
  String((parseJsonOrNull(Buffer.from(line, 'latin1').toString()) as { id?: string })?.id ?? 'none');
