import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { projectRoot } from '../../base/paths.js';
import { runAsAdmin } from '../../postgres/admin.js';
import { openPrefix } from '../../resource/definition/resource.js';
import { formatSize, sayCount } from './definition/index-drafts.js';
import { type Draft, makeDraft } from './draft.js';
import { makeKeyIdsFile, makeTokensFile, planLogWrite } from './files.js';
import { formatLedger } from './hiding/ledger.js';
import { listItems } from './names.js';
import { AdoptRefused, type Point, type Survey } from './schema.js';
import { type DraftFile, formatPoint, printFile, toPoints } from './sql.js';
import { type SurveyOptions, survey } from './survey.js';
import { draftsMax } from './tables/subject-choice.js';

// The public face of this folder: `adopt` writes drafts, and `countShown` in rows.ts compares views with a draft of today. survey.ts reads
// the app, and draft.ts makes the files of a resource. Below them, each folder imports only from those named before it: columns/ judges a
// column alone, tables/ finds whose rows a table has, hiding/ which rows clients see, definition/ the fields, filters, parts and writes.

export interface AdoptOptions extends SurveyOptions {
  readonly out: string;
  readonly write: readonly string[];
}

export const viewsFolder = 'sql/views';
export const resourcesFolder = 'config/resources';

/**
 * Writes new files into a folder; changes nothing in the database. Throws AdoptRefused when the schema allows no draft, or a file exists.
 */
export async function adopt(adminUrl: string, options: AdoptOptions) {
  const { out, write } = options;
  const surveyed = await runAsAdmin(adminUrl, (client) => survey(client, { ...options, keep: write }));
  const leftOut = surveyed.leftOut.map(({ table, reason }) => `${table.quoted}: ${reason}`);
  requireSubjects(surveyed, options, leftOut);
  const drafts = surveyed.subjects.map((subject) => makeDraft(subject, surveyed, write.includes(subject.table.name)));
  const ledgers = drafts.map(({ name, ledger }) => ({ resource: name, ...ledger }));
  const printed = mergeCommonPoints(listDraftFiles(surveyed, drafts)).map((file) => printDraft(file, out));
  const texts = new Map(printed.map(({ path, text }) => [path, text]));
  texts.set('ledger.json', printJson(ledgers));
  createFiles(out, texts);
  const { ownerless, tenant } = surveyed;
  const owned = ownerless
    ? [`workspaces: ${ownerless.of}, ${ownerless.rows} without an owner who may have tokens made`]
    : [];
  return {
    rows: [...owned, ...ledgers.map((ledger) => `${ledger.resource}: ${formatLedger(ledger)}`)],
    files: [...texts.keys()],
    tenant: tenant.reason,
    leftOut,
    open: orderByRows(printed.flatMap(({ open }) => open)),
    indexes: listIndexLines(drafts),
  };
}

function requireSubjects({ subjects }: Survey, { schema, write }: AdoptOptions, leftOut: readonly string[]): void {
  if (subjects.length === 0)
    throw new AdoptRefused(`No table of the schema "${schema}" can be a resource: ${listItems(leftOut, 20, '; ')}.`);
  if (subjects.length > draftsMax)
    throw new AdoptRefused(
      `--tables names ${subjects.length} tables; a gateway has at most ${draftsMax} resources: name those that clients read.`,
    );
  const unknown = write.filter((name) => !subjects.some(({ table }) => table.name === name));
  if (unknown.length > 0)
    throw new AdoptRefused(`--write names no table that becomes a resource: ${unknown.join(', ')}.`);
}

function listDraftFiles(found: Survey, drafts: readonly Draft[]): (DraftFile | Draft)[] {
  const file = planLogWrite(found)?.file;
  return [
    makeTokensFile(found),
    makeKeyIdsFile(drafts),
    ...(file && drafts.some(({ isLogged }) => isLogged) ? [file] : []),
    ...drafts.flatMap((draft) => [...draft.files.slice(0, 1), draft, ...draft.files.slice(1)]),
  ];
}

/** Prints a file with its own points; the first file asks those that many tables share. */
function printDraft(file: DraftFile | Draft, out: string) {
  const isSql = 'sql' in file;
  const path = isSql ? `${viewsFolder}/${file.path}` : `${resourcesFolder}/${file.name}.json`;
  const $schema = relative(join(out, resourcesFolder), join(projectRoot, 'config/resource.schema.json'));
  const points: Point[] = isSql
    ? toPoints(file.open).filter(({ of }) => of === undefined)
    : listOpenDescriptions(file.definition).map((text) => ({ text, rows: file.ledger.rows }));
  return {
    path,
    text: isSql ? printFile(file) : printJson({ $schema, ...file.definition }),
    open: points.map((point) => ({ ...point, text: `${path}: ${point.text}` })),
  };
}

const printJson = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`;

const placesMax = 3; // the terminal has one line for a point, the file all of its tables
const countPointRows = ({ rows = Number.POSITIVE_INFINITY }: Point): number => rows;

/** Moves the points that many tables share into the first file, which asks them once. */
function mergeCommonPoints([tokens, ...files]: (DraftFile | Draft)[]): (DraftFile | Draft)[] {
  const common = new Map<string, Point[]>();
  for (const point of files.flatMap((file) => ('sql' in file ? toPoints(file.open) : [])))
    if (point.of !== undefined) common.set(point.text, [...(common.get(point.text) ?? []), point]);
  const points = [...common].map(([text, some]): Point => {
    const rows = some.reduce((sum, point) => sum + countPointRows(point), 0);
    const places = some.toSorted((a, b) => countPointRows(b) - countPointRows(a)).flatMap(({ of }) => of ?? []);
    return { text, rows, places: [...new Set(places)] };
  });
  const { open = [], ...rest } = tokens as DraftFile;
  return [{ ...rest, open: [...open, ...points] }, ...files];
}

/** Puts choices for the whole schema first, then those about the most rows. */
function orderByRows(points: readonly Point[]): string[] {
  const sayRows = ({ rows }: Point): string => (rows === undefined ? '' : ` (${sayCount(rows)} rows)`);
  return points
    .toSorted((a, b) => countPointRows(b) - countPointRows(a) || 0)
    .map((point) => `${formatPoint(point, placesMax)}${sayRows(point)}`);
}

function listIndexLines(drafts: readonly Draft[]): string[] {
  const indexes = drafts.flatMap(({ files }) => files.flatMap(({ index }) => index ?? []));
  const unindexed = drafts.reduce((sum, draft) => sum + draft.unindexed.length, 0);
  const tables = new Set(indexes.map(({ table }) => table));
  const total = indexes.reduce((sum, { bytes }) => sum + bytes, 0);
  return [
    `Proposed: ${indexes.length}, tables: ${tables.size}, about ${formatSize(total)} in all; each makes every insert slower. Each file in ${viewsFolder}/indexes says what it serves.`,
    `Filters without an index of the app are not drafted: ${unindexed}, which the views name. With --all-filters they are, each with an index.`,
  ];
}

function listOpenDescriptions(value: unknown, at = ''): string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]): string[] =>
    key === 'description' && typeof inner === 'string' && inner.startsWith(openPrefix)
      ? [`${at}/${key}: ${inner.slice(openPrefix.length)}`]
      : listOpenDescriptions(inner, `${at}/${key}`),
  );
}

/** Throws AdoptRefused, and writes nothing, when one of the files exists. */
function createFiles(out: string, files: ReadonlyMap<string, string>): void {
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
