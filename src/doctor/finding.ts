import type texts from '../../config/check/advice.json';
import { readProject } from '../base/paths.js';

/** Advice by the code of a finding; docs/reference/check.md explains each code. */
export const advice = JSON.parse(readProject('config/check/advice.json')) as Readonly<Record<FindingCode, string>>;

export type FindingCode = keyof typeof texts;
/** `serve` does not start when an item is refused; `check` exits with 1 when one failed or is refused. */
export type Level = 'ok' | 'warning' | 'failed' | 'refused';

export interface Finding {
  readonly level: Level;
  readonly code: FindingCode;
  /** A text such as "replica 1 (10.0.0.5:5432/workspace)", or "settings". */
  readonly where: string;
  /** A view, role or resource; empty if there is only one. */
  readonly object: string;
  /** Text without secrets and values of customers. */
  readonly detail: string;
  readonly advice: string;
}

/** `advice` replaces the code's advice when the cause is known better. */
export type Item = Omit<Finding, 'where' | 'advice'> & { readonly advice?: string | null | undefined };

export function placeItem(where: string, item: Item): Finding {
  return { ...item, where, advice: item.level === 'ok' ? '' : (item.advice ?? advice[item.code]) };
}

/** Returns text such as "view gateway.klanten". */
export function getTitle({ code, object }: Item): string {
  return `${code.replaceAll('_', ' ')} ${object}`.trim();
}

/** Joins all faults into one item, or makes an item that is ok. */
export function sumUp(
  code: FindingCode,
  faults: readonly string[],
  whenOk = '',
  object = '',
  whenNot: Level = 'refused',
): Item {
  if (faults.length === 0) return { level: 'ok', code, object, detail: whenOk };
  return { level: whenNot, code, object, detail: `${faults.join('; ')}.` };
}

/** Makes an item for a fault that can pass, so that `serve` starts. */
export function fail(code: FindingCode, detail: string, object = ''): Item {
  return { level: 'failed', code, object, detail };
}

export function warn(code: FindingCode, detail: string, object = ''): Item {
  return { level: 'warning', code, object, detail };
}

export function faultIf(condition: boolean, fault: string): string[] {
  return condition ? [fault] : [];
}

export function nameFile(faults: readonly string[], { file }: { readonly file: string }): readonly string[] {
  return faults.length === 0 ? faults : [...faults, `the definition is ${file}`];
}

export function readCheckSql(name: string): string {
  return readProject(`sql/check/${name}.sql`);
}
