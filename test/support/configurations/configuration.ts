import { urlAs } from '../../../demo/cluster/passwords.js';
import type { FindingCode, Level } from '../../../src/doctor/finding.js';
import type { Settings } from '../../../src/settings.js';
import { shared, type TestDatabase } from '../workspace.js';

export interface Configuration {
  readonly change?: (database: TestDatabase) => string;
  readonly undo?: (database: TestDatabase) => string;
  readonly settings?: (database: TestDatabase) => Partial<Settings>;
  /** The gateway's clock is off by so much. */
  readonly clockMs?: number;
  readonly level: Exclude<Level, 'ok'>;
  readonly code: FindingCode;
  readonly detail: RegExp;
  /** These codes follow from the same configuration. */
  readonly also?: readonly FindingCode[];
  /** The finding comes from a trial that only `check` makes. */
  readonly thorough?: true;
  /** A thorough inspection looks at this resource instead of the customers: all four take three times as long. */
  readonly resource?: 'installaties' | 'werkbonnen';
}

const of =
  (level: Configuration['level']) =>
  (code: FindingCode, rest: Omit<Configuration, 'level' | 'code'>): Configuration => ({ level, code, ...rest });
export const [refused, failed, warning] = [of('refused'), of('failed'), of('warning')];

export type Configurations = Readonly<Record<string, Configuration>>;

export const replicaAs = (role: string, { name }: TestDatabase): string =>
  urlAs(shared.replicas[0] as string, role, name);
export const primaryAs = (role: string, { name }: TestDatabase): string => urlAs(shared.primary, role, name);
