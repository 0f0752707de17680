/** A statement of an SQL file. */
export interface SqlStatement {
  /** Without the comments before it and the semicolon behind it. */
  readonly text: string;
  /** The line of the file in which it begins, from 1. */
  readonly line: number;
}

/** Lexical elements (PostgreSQL 4.1): a semicolon in a comment, a string, a quoted name or a dollar-quoted text ends nothing. */
const element =
  /--[^\n]*|\/\*|e'(?:[^'\\]|\\[\s\S]|'')*'|'(?:[^']|'')*'|"(?:[^"]|"")*"|\$([a-z_\u0080-\uffff][\w\u0080-\uffff]*)?\$|[a-z_\u0080-\uffff][\w$\u0080-\uffff]*|\s+|[\s\S]/giy;

/** Depth of a routine's body that is written in SQL (CREATE FUNCTION, BEGIN ATOMIC … END), in which CASE has an END as well. */
const depths: Readonly<Record<string, number>> = { begin: 1, case: 1, end: -1 };

/** Splits the text of an SQL file into its statements, as psql does, so that each error has its line and statement. */
export function statementsOf(sql: string): SqlStatement[] {
  const statements: SqlStatement[] = [];
  let [start, parentheses, depth] = [-1, 0, 0];
  const finish = (end: number): void => {
    if (start >= 0) statements.push({ text: sql.slice(start, end).trimEnd(), line: lineAt(sql, start) });
    [start, parentheses, depth] = [-1, 0, 0];
  };
  for (let at = 0; at < sql.length; ) {
    const end = endOfElement(sql, at);
    const found = sql.slice(at, end);
    if (found === ';' && parentheses === 0 && depth === 0) finish(at);
    else if (start < 0 && !/^(\s|--|\/\*)/.test(found)) start = at;
    if (found === '(') parentheses++;
    if (found === ')') parentheses--;
    const step = depths[found.toLowerCase()] ?? 0;
    if (step !== 0 && start >= 0 && isRoutine(sql, start) && (depth > 0 || /^begin$/i.test(found))) depth += step;
    at = end;
  }
  finish(sql.length);
  return statements;
}

/** The line of a position, from 1. */
export function lineAt(text: string, position: number): number {
  return text.slice(0, position).split('\n').length;
}

function isRoutine(sql: string, start: number): boolean {
  return /^create\s+(or\s+replace\s+)?(function|procedure)\b/i.test(sql.slice(start, start + 80));
}

function endOfElement(sql: string, at: number): number {
  element.lastIndex = at;
  const [found = '', tag] = element.exec(sql) ?? [];
  if (found === '/*') return endOfComment(sql, at);
  if (/^\$.*\$$/.test(found) && found.length > 1) {
    const quote = tag === undefined ? '$$' : found;
    const close = sql.indexOf(quote, at + found.length);
    return close < 0 ? sql.length : close + quote.length;
  }
  return at + found.length;
}

/** Comments nest (PostgreSQL 4.1.5). */
function endOfComment(sql: string, at: number): number {
  let depth = 0;
  for (const mark of sql.slice(at).matchAll(/\/\*|\*\//g)) {
    depth += mark[0] === '/*' ? 1 : -1;
    if (depth === 0) return at + mark.index + 2;
  }
  return sql.length;
}
