import { join } from 'node:path';
import type schema from '../config/settings.schema.json';
import { SettingsError } from './base/errors.js';
import { getOwn, splitList } from './base/members.js';
import { findNearestName, suggest } from './base/nearest-name.js';
import { projectRoot, readFault, readProject, readText } from './base/paths.js';
import { type Tuning, tuning } from './base/tuning.js';
import { wallKeyAdvice } from './base/wall-key.js';
import { endsBeforeLogin, findUrlFault, percentEncoding } from './postgres/connection-url.js';
import { findRepeats } from './resource/projection/json-scan.js';
import { parseKeyring } from './resource/projection/keyring.js';

type Properties = (typeof schema)['properties'];

/** Typed by the defaults of the schema, with the constants; only `loadSettings` makes settings. */
export type Settings = Tuning & { readonly [S in keyof Properties]: Properties[S]['default'] } & {
  readonly docs: 'public' | 'ops' | 'off';
};

interface SettingSchema extends Partial<Record<'minimum' | 'maximum' | 'minLength' | 'maxLength', number>> {
  readonly type: string;
  readonly default: string | number | boolean;
  readonly pattern?: string;
  readonly enum?: readonly string[];
  readonly description: string;
  readonly 'x-secret'?: boolean;
}
type SettingsSchema = { readonly properties: Readonly<Record<string, SettingSchema>> };

type Environment = Readonly<Record<string, string | undefined>>;

/** Reads the source of the docs and of `--print-config`. */
export function readSettingsSchema(): SettingsSchema {
  return JSON.parse(readProject('config/settings.schema.json')) as SettingsSchema;
}

/** Turns perPageMax into PER_PAGE_MAX. */
export function getEnvironmentName(setting: string): string {
  return setting.replace(/[A-Z]/g, (c) => `_${c}`).toUpperCase();
}

/** Takes the environment before CONFIG_FILE before defaults; secrets also from NAME_FILE. Throws SettingsError with every fault. */
export function loadSettings(env: Environment, overrides: Partial<Settings> = {}): Settings {
  const schema = readSettingsSchema();
  const faults: string[] = [];
  const values: Record<string, unknown> = {
    ...Object.fromEntries(Object.entries(schema.properties).map(([setting, each]) => [setting, each.default])),
    ...readConfigFile(env.CONFIG_FILE, schema, faults),
  };
  for (const [setting, { type, 'x-secret': secret }] of Object.entries(schema.properties)) {
    const name = getEnvironmentName(setting);
    const file = secret ? env[`${name}_FILE`] : undefined;
    if (env[name] !== undefined && file !== undefined) faults.push(`${name} and ${name}_FILE are both set.`);
    const artifact = findFileArtifact(name, env[name]) ?? findFileArtifact(`${name}_FILE`, file);
    if (artifact !== null) faults.push(artifact);
    else if (env[name] !== undefined) values[setting] = parseSettingText(type, env[name]);
    else if (file !== undefined) values[setting] = readSecretFile(`${name}_FILE`, file, faults);
  }
  const constants: Record<string, unknown> = {}; // constants that tests set
  for (const [name, value] of Object.entries(overrides))
    (Object.hasOwn(tuning, name) ? constants : values)[name] = value;
  for (const setting of Object.keys(values)) {
    const allowed = getOwn(schema.properties, setting);
    if (allowed === undefined || !fits(values[setting], allowed))
      faults.push(describeSettingFault(setting, values[setting], schema));
  }
  for (const [setting, unusable] of Object.entries(unusableValues))
    faults.push(...unusable(getEnvironmentName(setting), String(values[setting] ?? ''), values));
  if (faults.length > 0) throw new SettingsError(`The settings are not valid:\n  ${faults.join('\n  ')}`);
  return Object.freeze({ ...tuning, ...constants, ...values }) as unknown as Settings;
}

/** Finds quotes of a shell, or half of a Windows line end, around a value. */
function findFileArtifact(name: string, text: string | undefined): string | null {
  if (text?.endsWith('\r'))
    return `${name} ends with a carriage return: give the file that it comes from the line ends of Unix.`;
  return text !== undefined && /^(["']).*\1$/s.test(text) ? `${name} is in quotes: leave them out.` : null;
}

/** Keeps text that is no value of the type, such as "1e3" or " 5", for the schema to refuse. */
function parseSettingText(type: string, text: string): unknown {
  if (type === 'boolean' && (text === 'true' || text === 'false')) return text === 'true';
  return type === 'integer' && /^-?\d+$/.test(text) ? Number(text) : text;
}

/** Replaces ajv, which costs a start 0.1 s of processor time. */
function fits(value: unknown, { type, minimum, maximum, minLength, maxLength, pattern, enum: values }: SettingSchema) {
  if (type === 'integer')
    return Number.isInteger(value) && Number(value) >= (minimum ?? -Infinity) && Number(value) <= (maximum ?? Infinity);
  if (typeof value !== type) return false;
  if (typeof value !== 'string') return true;
  const { length } = [...value]; // code points, as JSON Schema counts
  if (length < (minLength ?? 0) || length > (maxLength ?? Infinity)) return false;
  return (values?.includes(value) ?? true) && (pattern === undefined || new RegExp(pattern, 'u').test(value));
}

/** Names the setting, its allowed values and the refused value, or the nearest setting. */
function describeSettingFault(setting: string, value: unknown, { properties }: SettingsSchema): string {
  const allowed = properties[setting];
  if (allowed === undefined)
    return `CONFIG_FILE: there is no setting ${setting}${suggest(setting, Object.keys(properties))}`;
  const { type, minimum, maximum, enum: values, description } = allowed;
  const shownValue = JSON.stringify(value)?.slice(0, 80);
  if (type === 'integer')
    return `${getEnvironmentName(setting)} must be a whole number from ${minimum} to ${maximum}, not ${shownValue}.`;
  const oneOf = type === 'boolean' ? ['true', 'false'] : values;
  if (oneOf) return `${getEnvironmentName(setting)} must be one of ${oneOf.join(', ')}, not ${shownValue}.`;
  return `${getEnvironmentName(setting)} must not be ${shownValue}. ${description}`;
}

/** Faults that the schema cannot express; none quotes the value. */
const unusableValues: Readonly<
  Record<string, (name: string, value: string, all: Readonly<Record<string, unknown>>) => string[]>
> = {
  replicaUrls: listDatabaseUrlFaults,
  primaryUrls: listDatabaseUrlFaults,
  adminUrl: listDatabaseUrlFaults,
  redisUrl: (name, value) => {
    if (value === '') return [];
    if (!/^rediss?:[/][/]/.test(value)) return [`${name} must be a URL, redis://… or rediss://….`];
    if (URL.canParse(value) && !endsBeforeLogin(new URL(value))) return [];
    return [`${name} must be a URL, redis://USER:PASSWORD@HOST:PORT; ${percentEncoding}`];
  },
  wallKey: (name, value) =>
    value === '' || /^[A-Za-z0-9+/]{43}=$/.test(value)
      ? []
      : [`${name} must be the base64 of exactly 32 random bytes: ${wallKeyAdvice}.`],
  dataKeys: (name, value) => {
    try {
      parseKeyring(value || '{}');
      return [];
    } catch (error) {
      return [`${name}: ${(error as Error).message}`];
    }
  },
  corsOrigins: (name, value) =>
    splitList(value)
      .filter((origin) => !/^https?:/.test(origin) || !URL.canParse(origin) || new URL(origin).origin !== origin)
      .map(
        (origin) =>
          `${name} must list origins such as https://app.example.com, in lower case and without a path; ${JSON.stringify(origin.slice(0, 80))} is none.`,
      ),
  sunset: (name, value, { deprecation }) => {
    if (value === '') return [];
    const date = new Date(value);
    if (Number.isNaN(date.getTime()) || date.toUTCString() !== value)
      return [`${name} must be an HTTP date such as Fri, 01 Jan 2027 00:00:00 GMT.`];
    const deprecatedMs = Number(String(deprecation).slice(1)) * 1000; // 0 without a deprecation
    return date.getTime() < deprecatedMs ? [`${name} must not be earlier than DEPRECATION.`] : []; // RFC 9745 §4
  },
};

function listDatabaseUrlFaults(name: string, value: string): string[] {
  const urls = splitList(value);
  return urls.flatMap((url, i) => {
    const fault = findUrlFault(url);
    return fault === null ? [] : [`${name}${urls.length > 1 ? `, entry ${i + 1},` : ''} ${fault}`];
  });
}

/** Replaces secrets by whether they are set. */
export function hideSecrets(settings: Settings): Record<string, unknown> {
  const { properties } = readSettingsSchema();
  return Object.fromEntries(
    Object.entries(settings)
      .filter(([name]) => Object.hasOwn(properties, name))
      .map(([name, value]) => [name, properties[name]?.['x-secret'] ? (value ? '(set)' : '(not set)') : value]),
  );
}

function readConfigFile(file: string | undefined, schema: SettingsSchema, faults: string[]): Record<string, unknown> {
  const path = file ?? join(projectRoot, 'config/default.json');
  const artifact = findFileArtifact('CONFIG_FILE', file);
  if (artifact !== null) {
    faults.push(artifact);
    return {};
  }
  try {
    const { $schema: _, ...values } = parseObject(readText(path));
    for (const name of Object.keys(values))
      if (schema.properties[name]?.['x-secret']) faults.push(`${name} is a secret and must not stand in ${path}.`);
    return values;
  } catch (error) {
    faults.push(`CONFIG_FILE ${path} cannot be read: ${readFault(error)}.`);
    return {};
  }
}

/** Throws an error whose message quotes nothing of the text. */
function parseObject(text: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Error('it is not JSON');
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Error('it is no JSON object');
  const [repeated] = findRepeats(text);
  if (repeated !== undefined) throw new Error(`it has ${repeated.slice(1)} twice`);
  return value as Record<string, unknown>;
}

function readSecretFile(name: string, path: string, faults: string[]): string {
  try {
    return readText(path).trim();
  } catch (error) {
    faults.push(`${name} cannot be read: ${readFault(error)}.`);
    return '';
  }
}

/** Lists a sentence for each ignored name that is near to a setting, whose default is in force. */
export function listMisspeltNames(env: Environment): string[] {
  const settings = Object.entries(readSettingsSchema().properties).flatMap(([setting, { 'x-secret': secret }]) => {
    const name = getEnvironmentName(setting);
    return secret ? [name, `${name}_FILE`] : [name];
  });
  const knownNames = ['CONFIG_FILE', ...settings];
  return Object.keys(env).flatMap((name) => {
    const meant = knownNames.includes(name) ? undefined : findNearestName(name, knownNames, getDistanceMax);
    return meant === undefined ? [] : [`Unknown setting ${name} ignored; did you mean ${meant}?`];
  });
}

/** Allows short names no distance, because HOST is near to HOME. */
function getDistanceMax({ length }: string): number {
  return length < 5 ? 0 : length < 9 ? 1 : 2;
}
