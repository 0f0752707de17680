import type { FieldError, FieldErrorCode } from '../errors.js';
import { meantBy } from '../nearest-name.js';

/**
 * The parameters of a query string, never empty, and each at most once; the values of a list that is repeated are joined by commas. Faults
 * are added for what is unknown, repeated, empty or not decodable. "+" is a space, as in HTML forms (URL Standard §5.1).
 */
export function parseQuery(
  query: string,
  known: readonly string[],
  faults: FieldError[],
  isList: (name: string) => boolean = () => false,
): Map<string, string> {
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
    if (name === undefined || !known.includes(name)) {
      const meant = faults.length < meantMax ? meantBy(filtered(parameter), known, synonyms) : '.';
      const end = parameter === 'fields' ? fieldsElsewhere : meant;
      fault('unknown_parameter', `There is no parameter ${JSON.stringify(parameter)} here${end}`);
    } else if (seen.has(name) && !isList(name))
      fault('repeated_parameter', `The parameter ${name} is given more than once.`);
    else if (value === undefined) fault('invalid_encoding', `The value of ${name} is not valid percent-encoded UTF-8.`);
    else if (value === '') fault('empty_value', `The parameter ${name} has no value.`);
    else values.set(name, values.has(name) ? `${values.get(name)},${value}` : value);
    if (name !== undefined) seen.add(name);
  }
  return values;
}

const fieldsElsewhere =
  ', but on lists and sync passes: a detail is the whole record, because its ETag is of the whole record.';

/** So many unknown parameters are compared with the known ones: a query string has room for thousands. */
const meantMax = 20;

/** Parameters of other APIs, in small letters and digits alone, and those of lists that do the same. */
const synonyms: ReadonlyMap<string, string> = new Map(
  Object.entries({
    perPage: 'limit top first take size pagesize maxresults count',
    page: 'offset skip pagenumber pageindex',
    cursor: 'after startingafter pagetoken skiptoken continuationtoken',
    order: 'sort sortby sortorder orderby direction',
    fields: 'columns properties select',
    ids: 'id',
    total: 'includetotal totalcount withtotal',
    updatedSince: 'since modifiedsince updatedafter changedsince',
    from: 'start startdate datefrom',
    to: 'end enddate until dateto',
  }).flatMap(([name, others]) => others.split(' ').map((other) => [other, name] as const)),
);

/** "filter[status]" and "fields[klanten]", as JSON:API has them → "status" and "fields". */
function filtered(name: string): string {
  return name.replace(/^filter\[(.*)\]$/s, '$1').replace(/^fields\[.*\]$/s, 'fields');
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return undefined;
  }
}
