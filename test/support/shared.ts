import type { AppName } from '../../demo/seed/apps.js';
import type { SharedTemplate } from './template.js';

export interface Shared {
  readonly apps: Readonly<Record<AppName, SharedTemplate>>;
  readonly keys: Readonly<Record<string, string>>;
  readonly primary: string;
  readonly replicas: readonly string[];
  readonly logs: { readonly primary: string; readonly replica: string };
  readonly seeded: string;
}

/** The servers that `npm test` started for all files; files run by themselves need `npm test -- path`. */
export const shared = JSON.parse(process.env.TEST_SHARED ?? 'null') as Shared;
