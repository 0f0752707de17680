import { projectText } from '../paths.js';
import { type FindingCode, findings } from './findings.js';

/** `serve` does not start with a refused item. `check` exits with 1 when an item failed or is refused. */
export type Level = 'ok' | 'warning' | 'failed' | 'refused';

/** The result of checking one item on one server. `check --json` prints it as it is. */
export interface Finding {
  readonly level: Level;
  readonly code: FindingCode;
  /** Such as "replica 1 (10.0.0.5:5432/workspace)", or "settings". */
  readonly where: string;
  /** The view, role or resource that the item is about; empty when there is but one. */
  readonly object: string;
  /** A sentence without secrets and without values of customers. */
  readonly detail: string;
  /** The advice of the table; empty when it is ok. */
  readonly advice: string;
}

/** A finding without its server. */
export type Item = Omit<Finding, 'where' | 'advice'>;

export function found(where: string, item: Item): Finding {
  return { ...item, where, advice: item.level === 'ok' ? '' : findings[item.code].advice };
}

/** Such as "view gateway.klanten". */
export function titleOf({ code, object }: Item): string {
  return `${code.replaceAll('_', ' ')} ${object}`.trim();
}

/** Ok when there are no faults; else refused, with all of them in one sentence. */
export function verdict(code: FindingCode, faults: readonly string[], whenOk = '', object = ''): Item {
  if (faults.length === 0) return { level: 'ok', code, object, detail: whenOk };
  return { level: 'refused', code, object, detail: `${faults.join('; ')}.` };
}

/** Not ok, but `serve` starts all the same: a passing fault, such as a server that cannot be reached. */
export function failure(code: FindingCode, detail: string, object = ''): Item {
  return { level: 'failed', code, object, detail };
}

/** Works, but the operator should know. */
export function warning(code: FindingCode, detail: string, object = ''): Item {
  return { level: 'warning', code, object, detail };
}

/** The fault if the condition holds, for a list of faults. */
export function faultIf(condition: boolean, fault: string): string[] {
  return condition ? [fault] : [];
}

/** The faults with the file to correct, for faults that name places in a definition. */
export function withFile(faults: readonly string[], { file }: { readonly file: string }): readonly string[] {
  return faults.length === 0 ? faults : [...faults, `the definition is ${file}`];
}

/** The text of sql/check/NAME.sql. */
export function checkSql(name: string): string {
  return projectText(`sql/check/${name}.sql`);
}
