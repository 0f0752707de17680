import { readdirSync } from 'node:fs';
import { join, relative } from 'node:path';
import type { ErrorObject } from 'ajv';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { StartRefused } from '../errors.js';
import { projectRoot, projectText, readFault, readText } from '../paths.js';
import type { Codec } from '../projection/codec.js';
import { elementsOf, membersOf } from '../projection/json-scan.js';
import validateDefinition from './definition-validator.cjs';
import { listValuesMax } from './filter-kinds.js';
import isJsonSchema from './json-schema-validator.cjs';
import { contradictions, type Flaw, resolveAuditLogs, sharedNames } from './refusals.js';
import {
  type AuditRule,
  type Field,
  type Filter,
  type JsonSchema,
  type LoggedAs,
  leaves,
  type Resource,
  type ResourceSync,
  type ResourceWrite,
} from './resource.js';
import { walled, walledWrite } from './walls.js';

/** A file of RESOURCES_DIR that fits config/resource.schema.json, defaults filled in. */
export interface DefinitionFile
  extends Pick<
    Resource,
    | 'name'
    | 'record'
    | 'description'
    | 'view'
    | 'codecs'
    | 'fields'
    | 'auditEntity'
    | 'auditFields'
    | 'auditFieldsOfOthers'
  > {
  readonly table?: string;
  readonly detail: boolean;
  readonly version?: string;
  readonly order: readonly string[];
  readonly filters: Readonly<Record<string, Omit<Filter, 'type'>>>;
  readonly sync?: Omit<ResourceSync, 'appendOnly'> & Partial<Pick<ResourceSync, 'appendOnly'>>;
  readonly write?: Omit<ResourceWrite, 'audit' | 'view' | 'records'> & {
    readonly view?: string;
    readonly audit: AuditRule | false;
  };
}

const filesMax = 100;

/**
 * The resources the API serves, from the *.json files of a folder (default: config/resources), in the order of their
 * names. Throws StartRefused with every flaw of every file: its file, its place (RFC 6901) and the remedy.
 */
export function loadResources(dir: string): readonly Resource[] {
  const folder = dir === '' ? join(projectRoot, 'config/resources') : dir;
  const validate = definitionValidator(codecPresets());
  const flaws: string[] = [];
  const files = new Map<string, DefinitionFile>();
  for (const path of definitionPaths(folder)) {
    const found = readDefinition(path, validate);
    if (Array.isArray(found)) flaws.push(...found.map((flaw) => sentence(path, flaw)));
    else files.set(path, found);
  }
  const isWhole = flaws.length === 0; // a file that is missing here would be missed by those that refer to it
  const views = isWhole ? new Map([...files.values()].map((file) => [file.view, file])) : null;
  const compileSchema = schemaCompiler();
  for (const [path, file] of files)
    flaws.push(...contradictions(file, { views, compileSchema }).map((flaw) => sentence(path, flaw)));
  const logs = resolveAuditLogs(files);
  for (const [path, flaw] of [...sharedNames(files), ...(isWhole ? logs.flaws : [])]) flaws.push(sentence(path, flaw));
  if (flaws.length > 0) throw new StartRefused(`The resource definitions are not valid:\n  ${flaws.join('\n  ')}`);
  return [...files].map(([path, file]) => resourceOf(path, file, logs.resolved.get(path) ?? null));
}

function definitionPaths(folder: string): string[] {
  let names: string[];
  try {
    names = readdirSync(folder).filter((name) => name.endsWith('.json'));
  } catch (error) {
    throw new StartRefused(`RESOURCES_DIR ${folder} cannot be read: ${(error as NodeJS.ErrnoException).code}.`);
  }
  if (names.length === 0) throw new StartRefused(`RESOURCES_DIR ${folder} has no *.json file: write a definition.`);
  if (names.length > filesMax)
    throw new StartRefused(`RESOURCES_DIR ${folder} has ${names.length} *.json files; at most ${filesMax} are read.`);
  return names.sort().map((name) => join(folder, name));
}

type Validate = (value: unknown) => readonly Flaw[];

/** The definition in a file, or its flaws. */
function readDefinition(path: string, validate: Validate): DefinitionFile | Flaw[] {
  let text: string;
  let value: unknown;
  try {
    text = readText(path);
    value = JSON.parse(text);
  } catch (error) {
    const isSyntax = error instanceof SyntaxError;
    const reason = isSyntax ? `is not JSON (${error.message})` : `cannot be read (${readFault(error)})`;
    return [{ at: '', wrong: `the file ${reason}`, remedy: isSyntax ? 'correct the syntax' : 'make it readable' }];
  }
  const flaws = [...repeatedKeys(text), ...validate(value)];
  return flaws.length > 0 ? flaws : (value as DefinitionFile);
}

/** The codecs of config/codecs.json by name; a definition can use and replace them. */
export function codecPresets(): Readonly<Record<string, Codec>> {
  return JSON.parse(projectText('config/codecs.json'));
}

/** Checks a definition against config/resource.schema.json and fills in presets and defaults. */
function definitionValidator(presets: Readonly<Record<string, Codec>>): Validate {
  return (value) => {
    addPresets(value, presets);
    return validateDefinition(value)
      ? []
      : (validateDefinition.errors ?? []).filter(({ keyword }) => keyword !== 'if').map(flawOf);
  };
}

function addPresets(value: unknown, presets: Readonly<Record<string, Codec>>): void {
  if (typeof value !== 'object' || value === null) return;
  const definition = value as { codecs?: unknown };
  const own = definition.codecs ?? {};
  if (typeof own === 'object' && !Array.isArray(own)) definition.codecs = { ...presets, ...own };
}

/** An error of ajv in our words. */
function flawOf({ instancePath, keyword, params, message, propertyName }: ErrorObject): Flaw {
  if (keyword === 'additionalProperties') {
    return {
      at: `${instancePath}/${params.additionalProperty}`,
      wrong: 'there is no such key',
      remedy: 'remove it, or correct its spelling after config/resource.schema.json',
    };
  }
  const allowed = keyword === 'enum' ? `: ${(params.allowedValues as string[]).join(', ')}` : '';
  const place = propertyName === undefined ? instancePath : `${instancePath}/${propertyName}`;
  return { at: place, wrong: `it ${message ?? 'is not valid'}${allowed}`, remedy: 'see config/resource.schema.json' };
}

/** "config/resources/klanten.json /order: it is wrong; do this." */
function sentence(path: string, { at, wrong, remedy }: Flaw): string {
  return `${shortPath(path)} ${at || '/'}: ${wrong}; ${remedy}.`;
}

/** The path within the project, else as it was given. */
function shortPath(path: string): string {
  const inProject = relative(projectRoot, path);
  return inProject.startsWith('..') ? path : inProject;
}

/** A filter that every list has. */
const idsFilter: Omit<Filter, 'type'> = {
  column: 'id',
  kind: 'oneOf',
  description: `Only records with these identifiers, separated by commas, at most ${listValuesMax}.`,
};

/** The resource of a file without flaws: the types of order, filters and id follow from the fields. */
function resourceOf(path: string, file: DefinitionFile, audit: LoggedAs | null): Resource {
  const fields = new Map(leaves(file).map(({ field }) => [field.column, field]));
  const typeOf = (column: string) => (fields.get(column) as Field).type;
  const { write, sync, order, filters, ...rest } = file;
  const records = write?.view ?? file.view;
  const parts = Object.entries(sync?.parts ?? {}).map(([name, part]) => [name, { ...part, view: walled(part.view) }]);
  return {
    ...rest,
    view: walled(file.view),
    file: shortPath(path),
    table: file.table ?? file.name,
    idType: typeOf('id') as Resource['idType'],
    order: order.map((column) => ({ column, type: typeOf(column) })),
    filters: Object.fromEntries(
      Object.entries({ ids: idsFilter, ...filters }).map(([name, filter]) => [
        name,
        { ...filter, type: typeOf(filter.column) },
      ]),
    ),
    ...(sync && { sync: { ...sync, parts: Object.fromEntries(parts), appendOnly: sync.appendOnly ?? null } }),
    ...(write && { write: { ...write, view: walledWrite(records), records, audit } }),
  };
}

/** Keys that an object of the JSON text has twice: JSON.parse would silently take the last. */
export function repeatedKeys(json: string, at = ''): Flaw[] {
  const text = json.trim();
  if (text.startsWith('[')) return elementsOf(text).flatMap((element, i) => repeatedKeys(element, `${at}/${i}`));
  if (!text.startsWith('{')) return [];
  const seen = new Set<string>();
  return membersOf(text).flatMap(([name, value]) => {
    const inner = repeatedKeys(value, `${at}/${name}`);
    if (!seen.has(name)) {
      seen.add(name);
      return inner;
    }
    return [{ at: `${at}/${name}`, wrong: 'the key stands there twice', remedy: 'keep one of them' }, ...inner];
  });
}

/** Throws an Error when the schema is none. */
export type CompileSchema = (schema: JsonSchema) => ValidateFunction;

/**
 * Compiles the schemas of all fields. Most of them differ in their description and examples alone, which say nothing about a value: a
 * start compiles equal ones once. The schema of schemas is compiled already.
 */
function schemaCompiler(): CompileSchema {
  const ajv = new Ajv2020({
    strictTypes: false,
    strict: true,
    meta: false,
    validateSchema: false,
    code: { optimize: false }, // costs more than it saves for a few values
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
