import { compileStatements } from '../../src/resource/statements/statements.js';
import { encodeCursor, makeCursorContext } from '../../src/serve/read/cursor.js';
import { Client } from '../client.js';
import { figure, type Measured } from '../report.js';
import { alternate, median, pairedRatios } from '../rounds.js';
import { workspaceOf } from './data.js';
import { asReader, filterValues, resourceOf, type Subject } from './subject.js';

const perPage = 100;
/** Turns of each page, and those of a page whose ratio is near the goal or above it after fewer. */
const turns = [5, 25, 125];
const goal = 1.3;
const doubt = 1.2;
/** Combinations in the table beside those of no filter, each filter, and all. */
const slowestShown = 8;

/** A list by some filters, with the paths of its first and of its last page in either set. */
interface Combination {
  readonly name: string;
  readonly filters: readonly string[];
  readonly isWhole: boolean;
  readonly first: readonly [large: string, small: string];
  readonly last: readonly [large: string, small: string];
}

/** Times of a page in both sets, in milliseconds. */
interface Compared {
  readonly largeMs: number;
  readonly smallMs: number;
  readonly ratio: number;
}

/** The first and the last page of every combination of filters, in the large workspace and in the small set, in turns. */
export async function combinationsOf(large: Subject, small: Subject): Promise<Measured> {
  const clients = [await Client.connect(large), await Client.connect(small)] as const;
  const measured: (Pick<Combination, 'name' | 'filters' | 'isWhole'> & {
    rows: number;
    first: Compared;
    last: Compared;
  })[] = [];
  try {
    for (const resource of ['werkbonnen', 'logboeken']) {
      for (const combination of await combinationsIn(resource, large, small)) {
        const counts = await Promise.all(
          clients.map(async (client, i) => (await client.page(combination.first[i] as string)).pagination.count),
        );
        measured.push({
          ...combination,
          rows: counts[0] as number,
          first: await compare(clients, combination.first),
          last: await compare(clients, combination.last),
        });
      }
    }
    const worst = (end: 'first' | 'last'): number => Math.max(...measured.map((each) => each[end].ratio));
    const figures = {
      'Slowest first page of all combinations of filters against the small set: time': worst('first'),
      'Slowest last page of all combinations of filters against the small set: time': worst('last'),
    };
    const slowness = ({ first, last }: (typeof measured)[0]): number => Math.max(first.ratio, last.ratio);
    const slowest = new Set([...measured].sort((a, b) => slowness(b) - slowness(a)).slice(0, slowestShown));
    const shown = measured.filter((each) => each.isWhole || each.filters.length < 2 || slowest.has(each));
    const cells = ({ largeMs, smallMs, ratio }: Compared): string[] => [largeMs, smallMs, ratio].map(figure);
    const rows = shown.map(({ name, rows: count, first, last }) => [
      name,
      String(count),
      ...cells(first),
      ...cells(last),
    ]);
    const over = measured.filter((each) => slowness(each) > goal).length;
    const note = `All ${measured.length} combinations of filters were measured, ${over} of them above ${goal} ×; shown are those of no filter, of one, of all, and the ${slowestShown} slowest. Pages of ${perPage}, medians of ${turns.join(', ')} turns: more as long as the ratio is above ${doubt} ×. The pages were read before, so that both sets find them in memory.`;
    const head = ['list', 'rows', 'first page, ms', 'small set, ms', '×', 'last page, ms', 'small set, ms', '×'];
    return { figures, tables: [{ title: 'Every combination of filters', note, head, rows }] };
  } finally {
    for (const client of clients) client.close();
  }
}

async function compare(clients: readonly [Client, Client], paths: readonly [string, string]): Promise<Compared> {
  const sides = [0, 1] as const;
  for (const side of sides) await clients[side].page(paths[side]);
  for (const count of turns) {
    const [largeMs = [], smallMs = []] = await alternate(
      sides,
      count,
      async (side) => (await clients[side].page(paths[side])).ms,
    );
    const ratio = median(pairedRatios(largeMs, smallMs, (ms) => ms));
    if (ratio <= doubt || count === turns.at(-1)) return { largeMs: median(largeMs), smallMs: median(smallMs), ratio };
  }
  throw new Error('unreachable');
}

async function combinationsIn(resource: string, large: Subject, small: Subject): Promise<Combination[]> {
  const names = Object.keys(resourceOf(resource).filters).filter((name) => name !== 'ids');
  const subsets: string[][] = [[]];
  for (const name of names) subsets.push(...subsets.map((each) => [...each, name]));
  const paths = await Promise.all([large, small].map((subject) => pathsOf(subject, resource, subsets)));
  return subsets.map((filters, i) => ({
    name: `${resource}${filters.length > 0 ? ` by ${filters.join(', ')}` : ''}`,
    filters,
    isWhole: filters.length === names.length,
    first: paths.map((each) => each[i]?.first) as [string, string],
    last: paths.map((each) => each[i]?.last) as [string, string],
  }));
}

/** The last page is the one behind the key that stands a page before the end. */
async function pathsOf(
  { readerUrl, replicaUrl }: Subject,
  name: string,
  subsets: readonly string[][],
): Promise<{ first: string; last: string }[]> {
  const resource = resourceOf(name);
  const { list } = compileStatements(resource);
  return asReader(readerUrl, workspaceOf(0), async (client) => {
    const values: Readonly<Record<string, string | number>> = {
      ...(await filterValues(replicaUrl)),
      workspace: workspaceOf(0),
      timeZone: 'Europe/Amsterdam',
      skip: perPage,
      limit: 1,
    };
    const paths: { first: string; last: string }[] = [];
    for (const names of subsets) {
      const filters = Object.fromEntries(names.map((filter) => [filter, String(values[filter])]));
      const first = `/api/v1/${name}?${new URLSearchParams({ perPage: String(perPage), ...filters })}`;
      const { text, parameters } = list(names, 'desc').keys.all;
      const query = {
        text,
        values: parameters.map((parameter) => values[parameter]),
        rowMode: 'array' as const,
        types: asText,
      };
      const [key] = (await client.query<string[]>(query)).rows;
      const context = makeCursorContext(workspaceOf(0), name, filters);
      const last = key === undefined ? first : `${first}&cursor=${encodeCursor(context, { key, asOfMs: null })}`;
      paths.push({ first, last });
    }
    return paths;
  });
}

/** Keys are compared in PostgreSQL's own text form. */
const asText = { getTypeParser: () => (value: string) => value };
