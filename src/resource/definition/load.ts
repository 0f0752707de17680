import { join, relative } from 'node:path';
import type { ErrorObject } from 'ajv';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { SettingsError } from '../../base/errors.js';
import { listNames, projectRoot, readFault, readProject, readText } from '../../base/paths.js';
import { usualDiff } from '../projection/audit-diff.js';
import type { Codec } from '../projection/codec.js';
import { findRepeats } from '../projection/json-scan.js';
import validateDefinition from './definition-validator.cjs';
import type { FieldType } from './field-types.js';
import { type Filter, listValuesMax } from './filter-kinds.js';
import isJsonSchema from './json-schema-validator.cjs';
import { type CompileSchema, listContradictions, listLogs, listSharedNames } from './refusals.js';
import {
  type DefinitionFile,
  type Field,
  type Group,
  listLeaves,
  nameWalled,
  nameWalledWrite,
  type Resource,
} from './resource.js';

const filesMax = 100;

/** Reads config/resources by default, in the order of names. Throws SettingsError with every flaw of every file: file, place and remedy. */
export function loadResources(dir: string): readonly Resource[] {
  const flaws: string[] = [];
  const addFlaws = (path: string, ...of: readonly string[]): number =>
    flaws.push(...new Set(of.map((flaw) => `${shortenPath(path)} ${flaw}.`)));
  const files = new Map<string, DefinitionFile>();
  for (const path of listDefinitionPaths(dir === '' ? join(projectRoot, 'config/resources') : dir)) {
    const read = readDefinition(path);
    if (Array.isArray(read)) addFlaws(path, ...read);
    else files.set(path, read);
  }
  const isWhole = flaws.length === 0; // a file that is missing here would be missed by those that refer to it
  const filesByName = new Map([...files.values()].map((file) => [file.name, file]));
  const compileSchema = makeSchemaCompiler();
  for (const [path, file] of files)
    addFlaws(path, ...listContradictions(file, { filesByName: isWhole ? filesByName : null, compileSchema }));
  for (const [path, flaw] of listSharedNames(files)) addFlaws(path, flaw);
  if (flaws.length > 0) throw new SettingsError(`The resource definitions are not valid:\n  ${flaws.join('\n  ')}`);
  return [...files].map(([path, file]) => readResource(path, file, filesByName));
}

function listDefinitionPaths(folder: string): string[] {
  const explain = (fault: string) => new SettingsError(`RESOURCES_DIR ${folder} cannot be read: ${fault}.`);
  const names = listNames(folder, '.json', explain);
  if (names.length === 0) throw new SettingsError(`RESOURCES_DIR ${folder} has no *.json file: write a definition.`);
  if (names.length > filesMax)
    throw new SettingsError(`RESOURCES_DIR ${folder} has ${names.length} *.json files; at most ${filesMax} are read.`);
  return names.map((name) => join(folder, name));
}

function readDefinition(path: string): DefinitionFile | string[] {
  let [text, value]: [string, unknown] = ['', null];
  try {
    text = readText(path);
    value = JSON.parse(text);
  } catch (error) {
    if (!(error instanceof SyntaxError)) return [`/: the file cannot be read (${readFault(error)}); make it readable`];
    return [`/: the file is not JSON (${(error as Error).message}); correct the syntax`];
  }
  validateDefinition(value);
  const repeated = findRepeats(text).map((place) => `${place}: the key stands there twice; keep one of them`);
  const misfits = (validateDefinition.errors ?? [])
    .filter(({ keyword }) => !['if', 'propertyNames'].includes(keyword))
    .map(describeFlaw);
  if (repeated.length + misfits.length > 0) return [...repeated, ...misfits];
  const file = value as DefinitionFile;
  return { ...file, codecs: { ...readCodecPresets(), ...file.codecs } };
}

export function readCodecPresets(): Readonly<Record<string, Codec>> {
  return JSON.parse(readProject('config/codecs.json'));
}

/** Uses the words of its schema, or our own. */
function describeFlaw({ instancePath, keyword, params, message, propertyName, parentSchema }: ErrorObject): string {
  if (keyword === 'additionalProperties')
    return `${instancePath}/${params.additionalProperty}: there is no such key; remove it, or correct its spelling after config/resource.schema.json`;
  const at = propertyName === undefined ? instancePath || '/' : `${instancePath}/${propertyName}`;
  const allowed = keyword === 'enum' ? `: ${(params.allowedValues as string[]).join(', ')}` : '';
  return `${at}: ${parentSchema?.errorMessage ?? `it ${message ?? 'is not valid'}${allowed}; see config/resource.schema.json`}`;
}

/** Shortens a path to the form relative to the working directory, if it can. */
function shortenPath(path: string): string {
  const fromHere = relative(process.cwd(), path);
  return fromHere.startsWith('..') ? path : fromHere;
}

const idsFilter: Omit<Filter, 'type'> = {
  column: 'id',
  kind: 'ids',
  description: `Only records with these identifiers, separated by commas, at most ${listValuesMax}.`,
};

const usualLog = { view: 'records.logboeken_write', diff: usualDiff };

/** Derives the types of order, filters and id from the fields, and views from names. */
function readResource(path: string, file: DefinitionFile, named: ReadonlyMap<string, DefinitionFile>): Resource {
  const types = new Map(listLeaves(file).map(({ field }) => [field.column, field.type]));
  const addType = <T extends { column: string }>(of: T) => ({ ...of, type: types.get(of.column) as FieldType });
  const { write, sync, order, filters, fields, ...members } = file;
  const [log = usualLog] = listLogs(named.values());
  const parts = Object.entries(sync?.parts ?? {}).map(([name, part]) => [
    name,
    { ...part, view: nameWalled(part.view) },
  ]);
  const records = write?.view ?? file.view;
  const logged = (write?.audit || log).view ?? log.view;
  const addReference = (field: Field | Group): Field | Group =>
    'group' in field || !field.write || field.references === undefined
      ? field
      : { ...field, write: { ...field.write, references: nameWalled(named.get(field.references)?.view as string) } };
  return {
    ...members,
    fields: Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, addReference(field)])),
    view: nameWalled(file.view),
    file: shortenPath(path),
    table: file.table ?? file.name,
    idType: types.get('id') as Resource['idType'],
    order: order.map((column) => addType({ column })),
    filters: Object.fromEntries(
      Object.entries({ ids: idsFilter, ...filters }).map(([name, filter]) => [name, addType(filter)]),
    ),
    ...(sync && { sync: { ...sync, parts: Object.fromEntries(parts) } }),
    ...(write && {
      write: {
        ...write,
        view: nameWalledWrite(records),
        records,
        audit: write.audit && { ...write.audit, view: nameWalledWrite(logged), records: logged, diff: log.diff },
      },
    }),
  };
}

/** Compiles schemas that differ only in prose once. */
function makeSchemaCompiler(): CompileSchema {
  const ajv = new Ajv2020({
    strictTypes: false,
    strict: true,
    meta: false,
    validateSchema: false,
    code: { optimize: false }, // optimizing costs more than it saves for a few values
  });
  formats.default(ajv);
  const compiled = new Map<string, ValidateFunction>();
  return ({ description, examples, ...schema }) => {
    const key = JSON.stringify(schema);
    const known = compiled.get(key);
    if (known !== undefined) return known;
    if (!isJsonSchema(schema)) throw new Error(ajv.errorsText(isJsonSchema.errors, { dataVar: 'schema' }));
    const validate = ajv.compile(schema);
    compiled.set(key, validate);
    return validate;
  };
}
