import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { openMark } from '../check/settings.js';
import { projectRoot } from '../paths.js';
import { asAdmin } from '../postgres/admin.js';
import { logWrite } from './audit-log.js';
import { AdoptRefused } from './catalog.js';
import { type Draft, draftOf } from './draft.js';
import { indexFile, keyIdsFile, rowSecurityFile, tokensFile, viewFile } from './files.js';
import { type Survey, type SurveyOptions, survey } from './survey.js';

/** Folder of the files, and names of the tables whose resources are drafted with writes. */
export interface AdoptOptions extends SurveyOptions {
  readonly out: string;
  readonly write: readonly string[];
}

/** A question that the draft leaves to the operator. */
export interface OpenPoint {
  /** Path below the folder. */
  readonly file: string;
  /** Place in a definition (RFC 6901); absent: the file has it as a comment. */
  readonly at?: string;
  readonly text: string;
}

/** The result of \`adopt\`. */
export interface Adopted {
  /** Paths below the folder. */
  readonly files: readonly string[];
  readonly tenant: string;
  readonly leftOut: readonly string[];
  readonly open: readonly OpenPoint[];
}

const draftsMax = 100;
export const viewsFolder = 'sql/views';
export const resourcesFolder = 'config/resources';

/**
 * Drafts views, index proposals and definitions for a schema, and writes them into a folder as new files. Changes nothing in
 * the database. Throws AdoptRefused when the schema does not allow a draft, or when a file is there already.
 */
export async function adopt(adminUrl: string, options: AdoptOptions): Promise<Adopted> {
  const found = await asAdmin(adminUrl, (client) => survey(client, options));
  if (found.subjects.length === 0) throw new AdoptRefused(nothingToShow(found));
  if (found.subjects.length > draftsMax)
    throw new AdoptRefused(
      `The schema "${options.schema}" has ${found.subjects.length} tables of workspaces; a gateway has at most ${draftsMax} resources. Name the tables that clients may read: --tables TABLE,TABLE.`,
    );
  const drafts = found.subjects.map((subject) => draftOf(subject, found, options.write.includes(subject.table.name)));
  const written = options.write.filter(
    (name) => !drafts.some(({ subject, write }) => write && subject.table.name === name),
  );
  if (written.length > 0)
    throw new AdoptRefused(`--write names no table that becomes a resource: ${written.join(', ')}.`);
  const { files, open } = render(found, drafts, options.out);
  writeNew(options.out, files);
  return {
    files: [...files.keys()],
    tenant: found.tenant.reason,
    leftOut: found.leftOut.map(({ table, reason }) => `${table.quoted}: ${reason}`),
    open,
  };
}

function nothingToShow({ schema, leftOut }: Survey): string {
  const reasons = leftOut.map(({ table, reason }) => `${table.quoted} (${reason})`).slice(0, 20);
  return `No table of the schema "${schema}" can be a resource: ${reasons.join(', ')}.`;
}

function render(
  found: Survey,
  drafts: readonly Draft[],
  out: string,
): { files: Map<string, string>; open: OpenPoint[] } {
  const files = new Map<string, string>();
  const open: OpenPoint[] = [];
  const rowSecurity = rowSecurityFile(found);
  const shared = {
    ...(rowSecurity && { 'row_security.sql': rowSecurity }),
    'tokens.sql': tokensFile(found, drafts),
    'key_ids.sql': keyIdsFile(drafts),
  };
  const note = (file: string, points: readonly string[]): void => {
    for (const text of points) open.push({ file, text });
  };
  for (const [name, { sql, open: points }] of Object.entries(shared)) {
    files.set(`${viewsFolder}/${name}`, sql);
    note(`${viewsFolder}/${name}`, points);
  }
  const log = logWrite(found);
  if (log.sql !== undefined && drafts.some(({ write }) => write?.write.audit))
    files.set(`${viewsFolder}/logboeken_write.sql`, log.sql);
  const $schema = relative(join(out, resourcesFolder), join(projectRoot, 'config/resource.schema.json'));
  for (const draft of drafts) {
    const [sqlFile, jsonFile] = [
      `${viewsFolder}/${draft.view}.sql`,
      `${resourcesFolder}/${draft.definition.name}.json`,
    ];
    files.set(sqlFile, viewFile(draft));
    files.set(jsonFile, `${JSON.stringify({ $schema, ...draft.definition }, null, 2)}\n`);
    const indexes = draft.list.indexes.map(({ name, purpose, definition }) =>
      indexFile(
        `${draft.view}_${name}`,
        `For GET /${draft.definition.name}: ${purpose}`,
        draft.subject.table,
        definition,
      ),
    );
    for (const [name, sql] of [...indexes, ...draft.sync.files]) files.set(`${viewsFolder}/${name}`, sql);
    note(sqlFile, draft.open);
    for (const [at, text] of openDescriptions(draft.definition)) open.push({ file: jsonFile, at, text });
  }
  return { files, open };
}

/** Descriptions in a definition that begin with openMark, with their places. */
function openDescriptions(value: unknown, at = ''): [at: string, text: string][] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]): [string, string][] => {
    const place = `${at}/${key}`;
    if (key === 'description' && typeof inner === 'string' && inner.startsWith(openMark))
      return [[place, inner.slice(openMark.length)]];
    return openDescriptions(inner, place);
  });
}

/** Writes the files. Throws AdoptRefused, and writes nothing, when one of them exists. */
function writeNew(out: string, files: ReadonlyMap<string, string>): void {
  const there = [...files.keys()].filter((path) => existsSync(join(out, path)));
  if (there.length > 0)
    throw new AdoptRefused(
      `Nothing was written, because adopt overwrites no file. In ${out} there are already: ${there.join(', ')}. Give another folder with --out, or remove them.`,
    );
  for (const [path, text] of files) {
    mkdirSync(dirname(join(out, path)), { recursive: true });
    writeFileSync(join(out, path), text, { flag: 'wx' });
  }
}
