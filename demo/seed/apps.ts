import { join } from 'node:path';
import { projectRoot } from '../../src/base/paths.js';
import { loadResources } from '../../src/resource/definition/load.js';
import type { Codec } from '../../src/resource/projection/codec.js';
import { documentCustomers, encryptedCustomers, type SeededWorkspace } from './customers.js';
import type { Keys } from './encrypt.js';
import { seedId } from './random.js';

/** A reference app: SQL in sql/apps/NAME, its views and its definitions. The gateway is the same for all of them. */
export interface SeededApp {
  readonly name: string;
  readonly viewsDir: string;
  readonly resourcesDir: string;
  readonly workspaceId: (index: number) => string;
  readonly ownerId: (index: number) => string;
  /** The SQL files of the seed in order, each with its share of the time at `large`. */
  readonly steps: readonly { readonly file: string; readonly weight: number; readonly what: string }[];
  /** Makes the rows of the session's table seed_customers; their number counts from 1 in each workspace. */
  readonly customers: (keys: Keys) => (workspace: SeededWorkspace, n: number) => object;
  /** To be vacuumed. */
  readonly tables: readonly string[];
}

const first: SeededApp = {
  name: 'first',
  viewsDir: join(projectRoot, 'sql/views'),
  resourcesDir: join(projectRoot, 'config/resources'),
  workspaceId: (index) => seedId('workspace', index, 1),
  ownerId: (index) => seedId('gebruiker', index, 1),
  steps: [
    { file: '02_partitions', weight: 0, what: 'partitions' },
    { file: '03_workspaces', weight: 0, what: 'workspaces' },
    { file: '04_customers', weight: 1, what: 'customers' },
    { file: '05_installations', weight: 2, what: 'installations' },
    { file: '06_work_orders', weight: 20, what: 'work orders' },
    { file: '07_actions', weight: 20, what: 'actions' },
    { file: '08_hours', weight: 12, what: 'hours' },
    { file: '09_changes', weight: 1, what: 'changes' },
    { file: '10_log', weight: 25, what: 'log entries' },
    { file: '11_log_edges', weight: 0, what: 'log entries at the edges of days and years' },
  ],
  customers: encryptedCustomers,
  tables: [
    'workspaces',
    'users',
    'klanten',
    'installaties',
    'werkbonnen',
    'werkbon_handelingen',
    'werkbon_uren',
    'logboeken',
  ].map((table) => `app.${table}`),
};

const secondDefinitions = join(projectRoot, 'config/apps/second/resources');

const second: SeededApp = {
  name: 'second',
  viewsDir: join(projectRoot, 'sql/apps/second/views'),
  resourcesDir: secondDefinitions,
  workspaceId: (index) => String(101 + index),
  ownerId: (index) => String((101 + index) * 100 + 1),
  steps: [
    { file: '02_tenants', weight: 0, what: 'tenants' },
    { file: '03_customers', weight: 1, what: 'customers' },
    { file: '04_assets', weight: 2, what: 'assets' },
    { file: '05_work_orders', weight: 40, what: 'work orders' },
    { file: '06_activity', weight: 25, what: 'log entries' },
  ],
  customers: (keys) => documentCustomers(keys, vault()),
  tables: ['tenants', 'staff', 'customers', 'assets', 'work_orders', 'time_entries', 'activity'].map(
    (table) => `fieldops.${table}`,
  ),
};

/** The codec of the second app's customers, from their definition. */
function vault(): Codec {
  const customers = loadResources(secondDefinitions).find(({ name }) => name === 'klanten');
  return customers?.codecs.vault as Codec;
}

/** The reference apps by name. */
export const apps = { first, second } as const satisfies Readonly<Record<string, SeededApp>>;
export type AppName = keyof typeof apps;

export function isAppName(name: string): name is AppName {
  return Object.hasOwn(apps, name);
}
