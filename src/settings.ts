import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { projectRoot } from './paths.js';

/** Every setting, typed as config/settings.schema.json describes it (a unit test holds the two together). */
export interface Settings {
  readonly host: string;
  readonly port: number;
  readonly opsHost: string;
  readonly opsPort: number;
  readonly opsAllowedHosts: string;
  readonly publicUrl: string;
  readonly apiContact: string;
  readonly trustedProxyHops: number;
  readonly replicaUrls: string;
  readonly primaryUrl: string;
  readonly adminUrl: string;
  readonly dataKeys: string;
  readonly resourcesDir: string;
  readonly decodeLegacy: boolean;
  readonly decrypt: 'batched' | 'native';
  readonly timeZone: string;
  readonly perPageDefault: number;
  readonly perPageMax: number;
  readonly rateLimitPerMinute: number;
  readonly writesPerMinute: number;
  readonly authFailuresPerMinute: number;
  readonly publicRequestsPerMinute: number;
  readonly tokenCacheMs: number;
  readonly tokenCacheMax: number;
  readonly pageMemoryMax: number;
  readonly pageMemoryMs: number;
  readonly shortConnections: number;
  readonly shortDepth: number;
  readonly shortPerWorkspace: number;
  readonly longConnections: number;
  readonly longPerWorkspace: number;
  readonly queueWaitMs: number;
  readonly queueMax: number;
  readonly connectTimeoutMs: number;
  readonly statementTimeoutMs: number;
  readonly chunkBytes: number;
  readonly chunkRowsMax: number;
  readonly resumeMs: number;
  readonly largePagesPerToken: number;
  readonly largePagesPerWorkspace: number;
  readonly pageTimeMaxMs: number;
  readonly primaryConnections: number;
  readonly writeWaitMs: number;
  readonly writeTimeoutMs: number;
  readonly idempotencyWaitMs: number;
  readonly expiryIntervalMs: number;
  readonly freshnessWaitMs: number;
  readonly primaryReadConnections: number;
  readonly primaryReadsPerSecond: number;
  readonly probeIntervalMs: number;
  readonly probeDeadlineMs: number;
  readonly lagMaxMs: number;
  readonly namedStatements: boolean;
  readonly drainMs: number;
  readonly notReadyMs: number;
  readonly headerBytesMax: number;
  readonly urlBytesMax: number;
  readonly bodyBytesMax: number;
  readonly headersTimeoutMs: number;
  readonly requestTimeoutMs: number;
  readonly keepAliveTimeoutMs: number;
  readonly clientConnectionsMax: number;
  readonly minBytesPerSecond: number;
  readonly slowClientMs: number;
  readonly webConcurrency: number;
  readonly instances: number;
  readonly redisUrl: string;
  readonly logLevel: string;
  readonly deprecation: string;
  readonly sunset: string;
}

/** The settings do not fit their schema; the message names every fault and no secret. */
export class SettingsError extends Error {}

interface SettingSchema {
  readonly type: string;
  readonly default: string | number | boolean;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly description: string;
  readonly 'x-secret'?: boolean;
}
interface SettingsSchema {
  readonly properties: Readonly<Record<string, SettingSchema>>;
}

/** The schema as it stands in config/; docs and `--print-config` are made from it. */
export function settingsSchema(): SettingsSchema {
  return JSON.parse(readFileSync(join(projectRoot, 'config/settings.schema.json'), 'utf8')) as SettingsSchema;
}

/** perPageMax → PER_PAGE_MAX. */
export function environmentName(setting: string): string {
  return setting.replace(/[A-Z]/g, (c) => `_${c}`).toUpperCase();
}

/**
 * The only reader of environment and files: environment over CONFIG_FILE over defaults, then validated and frozen.
 * A secret is read from NAME or from the file NAME_FILE points to. Throws SettingsError naming every fault.
 */
export function loadSettings(
  env: Readonly<Record<string, string | undefined>>,
  overrides: Partial<Settings> = {},
): Settings {
  const schema = settingsSchema();
  const faults: string[] = [];
  const values: Record<string, unknown> = { ...readConfigFile(env.CONFIG_FILE, schema, faults) };
  for (const [setting, { 'x-secret': secret }] of Object.entries(schema.properties)) {
    const name = environmentName(setting);
    const file = secret ? env[`${name}_FILE`] : undefined;
    if (env[name] !== undefined && file !== undefined) faults.push(`${name} and ${name}_FILE are both set.`);
    if (env[name] !== undefined) values[setting] = env[name];
    else if (file !== undefined) values[setting] = readSecretFile(`${name}_FILE`, file, faults);
  }
  Object.assign(values, overrides);
  const validate = new Ajv2020({ allErrors: true, coerceTypes: true, useDefaults: true, strict: false }).compile(
    schema,
  );
  if (!validate(values)) {
    for (const error of validate.errors ?? []) {
      const setting = error.instancePath.slice(1) || String(error.params.additionalProperty ?? '');
      const limit = error.keyword === 'enum' ? ` ${(error.params.allowedValues as string[]).join(', ')}` : '';
      faults.push(`${environmentName(setting)} ${error.message ?? 'is not valid'}${limit}.`);
    }
  }
  if (faults.length > 0) throw new SettingsError(`The settings are not valid:\n  ${faults.join('\n  ')}`);
  delete values.$schema;
  return Object.freeze(values) as unknown as Settings;
}

/** The settings as they can be shown: secrets only say whether they are set. */
export function printableSettings(settings: Settings): Record<string, unknown> {
  const { properties } = settingsSchema();
  return Object.fromEntries(
    Object.entries(settings).map(([name, value]) => [
      name,
      properties[name]?.['x-secret'] ? (value ? '(set)' : '(not set)') : value,
    ]),
  );
}

function readConfigFile(file: string | undefined, schema: SettingsSchema, faults: string[]): Record<string, unknown> {
  const path = file ?? join(projectRoot, 'config/default.json');
  try {
    const { $schema: _, ...values } = JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>;
    for (const name of Object.keys(values)) {
      if (schema.properties[name]?.['x-secret']) faults.push(`${name} is a secret and must not stand in ${path}.`);
    }
    return values;
  } catch (error) {
    faults.push(
      `CONFIG_FILE ${path} cannot be read: ${error instanceof SyntaxError ? 'it is not JSON' : (error as NodeJS.ErrnoException).code}.`,
    );
    return {};
  }
}

function readSecretFile(name: string, path: string, faults: string[]): string {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch (error) {
    faults.push(`${name} cannot be read: ${(error as NodeJS.ErrnoException).code}.`);
    return '';
  }
}
