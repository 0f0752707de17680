import { urlAs } from '../../../demo/cluster/passwords.js';
import type { FindingCode, Level } from '../../../src/doctor/finding.js';
import type { Settings } from '../../../src/serve/settings.js';
import { shared, type TestDatabase } from '../workspace.js';

export interface Configuration {
  readonly change?: (database: TestDatabase) => string;
  readonly undo?: (database: TestDatabase) => string;
  readonly settings?: (database: TestDatabase) => Partial<Settings>;
  /** How far the gateway's clock is off. */
  readonly clockMs?: number;
  readonly level: Exclude<Level, 'ok'>;
  readonly code: FindingCode;
  readonly detail: RegExp;
  /** Codes that follow from the same configuration. */
  readonly also?: readonly FindingCode[];
  /** The finding comes from a trial that only `check` makes. */
  readonly thorough?: true;
  /** The only resource of a thorough inspection, when it is not the customers: all four take three times as long. */
  readonly resource?: 'installaties' | 'werkbonnen';
}

const of =
  (level: Configuration['level']) =>
  (code: FindingCode, detail: RegExp, rest: Omit<Configuration, 'level' | 'code' | 'detail'>): Configuration => ({
    level,
    code,
    detail,
    ...rest,
  });
export const [refused, failed, warning] = [of('refused'), of('failed'), of('warning')];

export type Configurations = Readonly<Record<string, Configuration>>;

export const replicaAs = (role: string, { name }: TestDatabase): string =>
  urlAs(shared.replicas[0] as string, role, name);
export const primaryAs = (role: string, { name }: TestDatabase): string => urlAs(shared.primary, role, name);
