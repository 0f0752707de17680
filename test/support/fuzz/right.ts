import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { loadResources } from '../../../src/resource/definition/load.js';
import { type ListName, listNames } from '../lists.js';
import type { Harvest } from './harvest.js';
import { type FuzzRequest, type HeaderField, ownCanary, weighted } from './request.js';
import type { FuzzWorkspace, TokenName, World } from './world.js';

export const apiPath = '/api/v1';
const json: HeaderField = ['Content-Type', 'application/json'];

/** Requests as a careful client of the workspace makes them. What they build on is what `harvest` holds at that moment. */
export function rightRequests(world: World, harvest: Harvest): fc.Arbitrary<FuzzRequest> {
  return fc.oneof(...world.workspaces.map((workspace) => ofWorkspace(workspace, harvest)));
}

function ofWorkspace(workspace: FuzzWorkspace, harvest: Harvest): fc.Arbitrary<FuzzRequest> {
  return weighted(
    [40, fc.oneof(...listNames.map((list) => pages(workspace, list)))],
    [14, nextPages(workspace, harvest)],
    [20, details(workspace, harvest)],
    [8, creations(workspace)],
    [14, changes(workspace, harvest)],
    [3, repeats(workspace, harvest)],
    [1, descriptions()],
  );
}

function tokens(workspace: FuzzWorkspace, ...names: TokenName[]): fc.Arbitrary<HeaderField> {
  return fc.constantFrom(...names).map((name) => ['Authorization', `Bearer ${workspace.tokens[name]}`]);
}

const host: HeaderField = ['Host', 'api.example'];
const readMethods = weighted([9, fc.constant('GET')], [1, fc.constant('HEAD')]);
const niceties = fc
  .record(
    {
      Accept: fc.constantFrom('application/json', '*/*', 'application/*', 'text/html, application/json;q=0.5'),
      'Accept-Encoding': fc.constantFrom('gzip', 'br', 'zstd', 'gzip, br', 'identity', 'gzip;q=0.5, br;q=0', '*'),
      'X-Request-Id': fc.stringMatching(/^[A-Za-z0-9._:+=-]{1,40}$/),
      'User-Agent': fc.constant('fuzz'),
    },
    { requiredKeys: [] },
  )
  .map((fields) => Object.entries(fields) as HeaderField[]);

function get(
  target: fc.Arbitrary<string>,
  token: fc.Arbitrary<HeaderField>,
  own: fc.Arbitrary<readonly HeaderField[]> = fc.constant([]),
): fc.Arbitrary<FuzzRequest> {
  return fc.tuple(readMethods, target, token, niceties, own).map(([method, path, bearer, nice, more]) => ({
    method,
    target: `${apiPath}${path}`,
    headers: [host, bearer, ...nice, ...more],
    body: null,
  }));
}

const dates = fc
  .date({ min: new Date('2018-01-01'), max: new Date('2027-01-01'), noInvalidDate: true })
  .map((date) => date.toISOString().slice(0, 10));
const range = { from: dates.map((date) => `2018${date.slice(4)}`), to: dates.map((date) => `2027${date.slice(4)}`) };

const some = (ids: readonly string[]): fc.Arbitrary<string> =>
  fc.array(fc.constantFrom(...ids), { minLength: 1, maxLength: 20 }).map((list) => list.join(','));

const shownMembers = new Map(loadResources('').map(({ name, fields }) => [name, Object.keys(fields)]));

function pages(workspace: FuzzWorkspace, list: ListName): fc.Arbitrary<FuzzRequest> {
  const filters: Readonly<Record<ListName, Record<string, fc.Arbitrary<string>>>> = {
    klanten: { ids: some(workspace.customers), updatedSince: range.from },
    installaties: {
      ids: some(workspace.installations),
      customerId: fc.constantFrom(...workspace.customers),
      updatedSince: range.from,
    },
    werkbonnen: {
      ids: some(workspace.workOrders),
      installationId: fc.constantFrom(...workspace.installations),
      status: fc.constantFrom('gepland', 'afgerond'),
      updatedSince: range.from.map((day) => `${day}T00:00:00+01:00`),
      ...range,
    },
    logboeken: {
      ids: some(['1', '2', '3', '500']),
      actie: fc.constantFrom('aangemaakt', 'gewijzigd', 'verwijderd'),
      entity: fc.constantFrom('klant', 'installatie', 'werkbon', 'gebruiker', 'onbekend', 'niets'),
      entityId: fc.constantFrom(...workspace.installations, ...workspace.customers),
      ...range,
    },
  };
  const perPage = weighted([20, fc.integer({ min: 1, max: 30 })], [1, fc.constantFrom(51, 100, 250, 10_000)]);
  // perPage is always given: the default of 100 would make most answers of the same size.
  const query = fc
    .record(
      {
        perPage,
        page: fc.integer({ min: 1, max: 6 }),
        total: fc.constantFrom('true', 'false'),
        order: fc.constantFrom('asc', 'desc'),
        fields: fc.subarray(shownMembers.get(list) as string[], { minLength: 1 }).map((names) => names.join()),
        ...filters[list],
      },
      { requiredKeys: ['perPage'] },
    )
    .map((values) =>
      new URLSearchParams(
        Object.entries(values).map(([name, value]): [string, string] => [name, String(value)]),
      ).toString(),
    );
  return get(
    query.map((text) => `/${list}?${text}`),
    tokens(workspace, 'all', 'readOnly', list),
  );
}

function nextPages(workspace: FuzzWorkspace, harvest: Harvest): fc.Arbitrary<FuzzRequest> {
  const target = fc.nat({ max: 499 }).map((number) => {
    for (let i = 0; i < 50; i++) {
      const given = harvest.cursors.pick(number + i);
      if (given?.workspace === workspace && given.next !== null) return given.next.slice(apiPath.length);
    }
    return '/werkbonnen?perPage=2';
  });
  return get(target, tokens(workspace, 'all', 'readOnly'));
}

function details(workspace: FuzzWorkspace, harvest: Harvest): fc.Arbitrary<FuzzRequest> {
  const { customers, installations, workOrders } = workspace;
  const condition = fc.constantFrom<readonly HeaderField[]>([], [], [['If-None-Match', '"v1"']], [['If-Match', '*']]);
  const created = fc
    .nat({ max: 49 })
    .map(
      (n) => `/installaties/${harvest.created(workspace, n) ?? (installations[n % installations.length] as string)}`,
    );
  const detail = (list: 'klanten' | 'installaties' | 'werkbonnen', ids: readonly string[]) => {
    const target = fc.constantFrom(...ids).map((id) => `/${list}/${id}`);
    return get(target, tokens(workspace, 'all', 'readOnly', list), list === 'installaties' ? condition : undefined);
  };
  return fc.oneof(
    detail('klanten', customers),
    detail('installaties', installations),
    get(created, tokens(workspace, 'all', 'installaties'), condition),
    detail('werkbonnen', workOrders),
  );
}

export function members(workspace: FuzzWorkspace): Record<string, fc.Arbitrary<unknown>> {
  const words = fc.constantFrom(...`koel|cel é|😀|"|\\|<b>|' or 1=1 --|\n|"; drop table students; --`.split('|'));
  const text = (max: number): fc.Arbitrary<string> =>
    fc.array(words, { maxLength: 12 }).map((list) => `${ownCanary} ${list.join(' ')}`.slice(0, max));
  const nullable = (each: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> => fc.option(each, { freq: 6 });
  return {
    customerId: fc.constantFrom(...workspace.customers),
    naam: text(100),
    omschrijving: nullable(text(3000)),
    locatie: nullable(text(100)),
    merk: nullable(text(60)),
    type: nullable(text(60)),
    serienummer: nullable(text(60)),
    bouwjaar: nullable(fc.integer({ min: 1900, max: 2100 })),
    inbedrijfstelling: nullable(fc.constantFrom('0001-01-01', '1999-12-31', '2024-02-29', '9999-12-31')),
  };
}

function written(
  method: string,
  target: fc.Arbitrary<string>,
  workspace: FuzzWorkspace,
  own: (target: string) => readonly HeaderField[],
  body: fc.Arbitrary<unknown>,
): fc.Arbitrary<FuzzRequest> {
  return fc.tuple(target, tokens(workspace, 'all', 'writeOnly'), niceties, body).map(([path, bearer, nice, value]) => {
    const body = Buffer.from(JSON.stringify(value));
    const key = body.length % 20 === 0 ? '1' : randomUUID(); // some keys are used again
    return {
      method,
      target: apiPath + path + (body.length % 9 === 0 ? '?dryRun=true' : ''),
      headers: [host, bearer, json, ['Idempotency-Key', key], ...own(path), ...nice],
      body,
    };
  });
}

function creations(workspace: FuzzWorkspace): fc.Arbitrary<FuzzRequest> {
  const body = fc.record(members(workspace), { requiredKeys: ['customerId', 'naam'] });
  return written('POST', fc.constant('/installaties'), workspace, () => [], body);
}

/** Sends the version as last seen; sometimes another client was faster. */
function changes(workspace: FuzzWorkspace, harvest: Harvest): fc.Arbitrary<FuzzRequest> {
  const { installations } = workspace;
  const target = fc
    .nat({ max: 499 })
    .map(
      (n) =>
        `/installaties/${(n % 3 === 0 && harvest.created(workspace, n)) || (installations[n % installations.length] as string)}`,
    );
  const ifMatch = (path: string): HeaderField[] => [
    ['If-Match', harvest.etags.get(path.slice('/installaties/'.length)) ?? '"v1"'],
  ];
  return written('PATCH', target, workspace, ifMatch, fc.record(members(workspace), { requiredKeys: [] }));
}

function repeats(workspace: FuzzWorkspace, harvest: Harvest): fc.Arbitrary<FuzzRequest> {
  return fc
    .tuple(fc.nat({ max: 199 }), creations(workspace))
    .map(([number, other]) => harvest.writes.pick(number) ?? other);
}

function descriptions(): fc.Arbitrary<FuzzRequest> {
  const paths = fc.constantFrom('', '/openapi.json');
  return fc.tuple(fc.constantFrom('GET', 'HEAD', 'OPTIONS'), paths, niceties).map(([method, path, nice]) => ({
    method,
    target: apiPath + path,
    headers: [host, ...nice],
    body: null,
  }));
}
