import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { projectRoot } from '../paths.js';

/** One thing `check` looked at on one server. */
export interface Finding {
  /** Such as "replica 1 (10.0.0.5:5432/workspace)"; the settings themselves are a "server" too. */
  readonly server: string;
  readonly what: string;
  readonly ok: boolean;
  /** Not ok, and `serve` may not start with it. What cannot be reached or may pass does not refuse. */
  readonly refuse: boolean;
  /** A sentence; names no secret and no value of a customer. */
  readonly detail: string;
}

/** A finding without its server. */
export type Item = Omit<Finding, 'server'>;

/** Ok when there are no faults; else all of them in one sentence. */
export function verdict(what: string, faults: readonly string[], whenOk: string): Item {
  if (faults.length === 0) return { what, ok: true, refuse: false, detail: whenOk };
  return { what, ok: false, refuse: true, detail: `${faults.join('; ')}.` };
}

/** Not ok, but no reason for `serve` not to start. */
export function warning(what: string, detail: string): Item {
  return { what, ok: false, refuse: false, detail };
}

/** The text of sql/check/NAME.sql. */
export function checkSql(name: string): string {
  return readFileSync(join(projectRoot, 'sql/check', `${name}.sql`), 'utf8');
}
