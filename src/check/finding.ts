import { projectText } from '../paths.js';

/** The result of checking one item on one server. */
export interface Finding {
  /** Such as "replica 1 (10.0.0.5:5432/workspace)", or "settings". */
  readonly server: string;
  readonly subject: string;
  readonly ok: boolean;
  /** Not ok, and `serve` must not start with it. False for a passing fault, such as a server that cannot be reached. */
  readonly refuse: boolean;
  /** A sentence without secrets and without values of customers. */
  readonly detail: string;
}

/** A finding without its server. */
export type Item = Omit<Finding, 'server'>;

/** Ok when there are no faults; else all of them in one sentence. */
export function verdict(subject: string, faults: readonly string[], whenOk = ''): Item {
  if (faults.length === 0) return { subject, ok: true, refuse: false, detail: whenOk };
  return { subject, ok: false, refuse: true, detail: `${faults.join('; ')}.` };
}

/** The fault if the condition holds, for a list of faults. */
export function faultIf(condition: boolean, fault: string): string[] {
  return condition ? [fault] : [];
}

/** Not ok, but `serve` starts all the same. */
export function warning(subject: string, detail: string): Item {
  return { subject, ok: false, refuse: false, detail };
}

/** The text of sql/check/NAME.sql. */
export function checkSql(name: string): string {
  return projectText(`sql/check/${name}.sql`);
}
