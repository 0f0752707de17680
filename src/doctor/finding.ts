import type texts from '../../config/check/advice.json';
import { readProject } from '../base/paths.js';

export type FindingCode = keyof typeof texts;
/** `serve` starts with a failed item, which is a fault that can pass, and not with a refused one; `check` exits with 1 for both. */
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

/** A finding of one server or of the settings. `advice` replaces the code's advice when the cause is known better. */
export type Item = Omit<Finding, 'where' | 'advice'> & { readonly advice?: string | null | undefined };

/** Makes a finding of an item, with the advice of its code. */
export function placeItem(where: string, item: Item): Finding {
  return { ...item, where, advice: item.level === 'ok' ? '' : (item.advice ?? readAdvice()[item.code]) };
}

/** Reads the advice by the code of a finding; docs/reference/check.md explains each code. */
export function readAdvice(): Readonly<Record<FindingCode, string>> {
  return JSON.parse(readProject('config/check/advice.json'));
}

/** Returns text such as "view gateway.klanten". */
export function getTitle({ code, object }: Item): string {
  return `${code.replaceAll('_', ' ')} ${object}`.trim();
}

export function makeItem(level: Level, code: FindingCode, detail: string, object = ''): Item {
  return { level, code, object, detail };
}

/** Joins all faults into one item of the level, or makes an item that is ok. `file` is the definition that the operator has to mend. */
export function summarizeFaults(
  code: FindingCode,
  faults: readonly string[],
  options: { whenOk?: string; object?: string; level?: Level; file?: string } = {},
): Item {
  const { whenOk = '', object = '', level = 'refused', file } = options;
  if (faults.length === 0) return makeItem('ok', code, whenOk, object);
  const sentences = file === undefined ? faults : [...faults, `the definition is ${file}`];
  return makeItem(level, code, `${sentences.join('; ')}.`, object);
}

export function readCheckSql(name: string): string {
  return readProject(`sql/check/${name}.sql`);
}
