import { type AppName, apps, isAppName } from '../../demo/seed/apps.js';
import { corruptCustomers } from '../../demo/seed/customers.js';
import { customerPlain } from '../../demo/seed/plain.js';
import { numberedId, seedId } from '../../demo/seed/random.js';

/** The reference apps differ in these facts. TEST_APP chooses one: `npm test` runs the files of `everyApp` once for each. */
interface AppFacts {
  readonly unknownId: string;
  readonly customerId: (workspace: number, n: number) => string;
  readonly lostMembers: (pointer: string) => readonly string[];
  readonly firstVersion: number;
  readonly moves: string;
  readonly installations: string;
  readonly log: Readonly<
    Record<'customer' | 'installation' | 'order' | 'user' | 'created' | 'changed' | 'token', string>
  >;
  readonly logged: Readonly<
    Record<'customerId' | 'naam' | 'bouwjaar' | 'inbedrijfstelling' | 'locatie' | 'merk', string>
  >;
  readonly planned: string;
  readonly done: string;
}

const first: AppFacts = {
  unknownId: '00000000-0000-4000-8000-000000000000',
  customerId: (workspace, n) => seedId('klant', workspace, n),
  lostMembers: (pointer) => [pointer],
  firstVersion: 1,
  moves: '',
  installations: 'app.installaties',
  log: {
    customer: 'klant',
    installation: 'installatie',
    order: 'werkbon',
    user: 'gebruiker',
    created: 'aangemaakt',
    changed: 'gewijzigd',
    token: 'token',
  },
  logged: {
    customerId: 'klant_id',
    naam: 'naam',
    bouwjaar: 'bouwjaar',
    inbedrijfstelling: 'inbedrijfstelling',
    locatie: 'locatie',
    merk: 'merk',
  },
  planned: 'gepland',
  done: 'afgerond',
};

const sealedMembers = [
  '/naam',
  ...['straat', 'huisnummer', 'toevoeging', 'postcode', 'plaats', 'land'].map((member) => `/adres/${member}`),
  '/kvkNummer',
];

const second: AppFacts = {
  unknownId: '999999999999',
  customerId: numberedId,
  lostMembers: () => sealedMembers,
  firstVersion: 0,
  moves: ', version = version + 1, updated_at = clock_timestamp()',
  installations: 'fieldops.assets',
  log: {
    customer: 'Customer',
    installation: 'Asset',
    order: 'WorkOrder',
    user: 'Staff',
    created: 'create',
    changed: 'update',
    token: 'api_token',
  },
  logged: {
    customerId: 'customer_id',
    naam: 'name',
    bouwjaar: 'built_in',
    inbedrijfstelling: 'commissioned_on',
    locatie: 'location',
    merk: 'brand',
  },
  planned: 'planned',
  done: 'done',
};

const chosen = process.env.TEST_APP ?? 'first';
if (!isAppName(chosen)) throw new Error(`TEST_APP must be ${Object.keys(apps).join(' or ')}, not "${chosen}".`);

export const appName: AppName = chosen;
export const app: AppFacts = { first, second }[appName];

export interface Customer {
  readonly id: string;
  readonly naam: string | null;
  readonly adres: Readonly<Record<string, string | null>>;
  readonly kvkNummer: string | null;
  readonly decodeErrors?: readonly string[];
}

export const undecodable: readonly { readonly n: number; readonly id: string; readonly pointers: readonly string[] }[] =
  corruptCustomers.map(({ n, pointer }) => ({ n, id: app.customerId(0, n), pointers: app.lostMembers(pointer) }));

export function customerOf(workspace: number, n: number): Customer {
  const { naam, adres, kvkNummer } = customerPlain(workspace, n);
  const lost = undecodable.find((each) => workspace === 0 && each.n === n)?.pointers;
  const shown = <T>(pointer: string, value: T): T | null => (lost?.includes(pointer) ? null : value);
  return {
    id: app.customerId(workspace, n),
    naam: shown('/naam', naam),
    adres: Object.fromEntries(Object.entries(adres).map(([name, value]) => [name, shown(`/adres/${name}`, value)])),
    kvkNummer: shown('/kvkNummer', kvkNummer),
    ...(lost && { decodeErrors: lost }),
  };
}
