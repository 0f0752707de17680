import type { FieldError, FieldErrorCode } from '../errors.js';

/**
 * The parameters of a query string, each at most once and never empty. Faults are added for what is unknown, repeated,
 * empty or not decodable. "+" is a space, as in HTML forms (URL Standard §5.1).
 */
export function parseQuery(query: string, known: ReadonlySet<string>, faults: FieldError[]): Map<string, string> {
  const values = new Map<string, string>();
  if (query === '') return values;
  const seen = new Set<string>();
  for (const pair of query.split('&')) {
    if (pair === '') continue;
    const at = pair.indexOf('=');
    const name = decode(at < 0 ? pair : pair.slice(0, at));
    const value = at < 0 ? '' : decode(pair.slice(at + 1));
    const parameter = (name ?? pair).slice(0, 100);
    const fault = (code: FieldErrorCode, detail: string): number => faults.push({ parameter, code, detail });
    if (name === undefined || !known.has(name))
      fault('unknown_parameter', `There is no parameter ${JSON.stringify(parameter)} here.`);
    else if (seen.has(name)) fault('repeated_parameter', `The parameter ${name} is given more than once.`);
    else if (value === undefined) fault('invalid_encoding', `The value of ${name} is not valid percent-encoded UTF-8.`);
    else if (value === '') fault('empty_value', `The parameter ${name} has no value.`);
    else values.set(name, value);
    if (name !== undefined) seen.add(name);
  }
  return values;
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return undefined;
  }
}
