import type pg from 'pg';
import { type CorruptCustomer, corruptCustomers, truncated, withBadTag } from './corrupt.js';
import { encryptValue, type Keys } from './encrypt.js';
import { type CustomerPlain, customerPlain } from './plain.js';
import { random } from './random.js';

const encryptedColumns = [
  'naam',
  'straat',
  'huisnummer',
  'toevoeging',
  'postcode',
  'plaats',
  'kvk_nummer',
  'email',
  'telefoon',
] as const;
type EncryptedColumn = (typeof encryptedColumns)[number];
type Row = Record<EncryptedColumn, string | null> & { n: number; land: string | null; plain_name: string };

const batchSize = 1_000;

/** Encrypts the customers of one workspace into the session's table seed_customers, one statement per thousand. */
export async function loadCustomers(
  client: pg.Client,
  keys: Keys,
  workspace: { index: number; id: string; customers: number },
  onProgress: (share: number) => void,
): Promise<void> {
  for (let first = 1; first <= workspace.customers; first += batchSize) {
    const last = Math.min(workspace.customers, first + batchSize - 1);
    const rows: Row[] = [];
    for (let n = first; n <= last; n++) rows.push(storedCustomer(keys, workspace, n));
    await client.query(
      `insert into seed_customers (workspace, n, plain_name, land, ${encryptedColumns.join(', ')})
       select $1, * from unnest($2::int[], $3::text[], $4::text[]${encryptedColumns.map((_, at) => `, $${at + 5}::text[]`).join('')})`,
      [
        workspace.index,
        rows.map((row) => row.n),
        rows.map((row) => row.plain_name),
        rows.map((row) => row.land),
        ...encryptedColumns.map((column) => rows.map((row) => row[column])),
      ],
    );
    onProgress(last / workspace.customers);
  }
}

function storedCustomer(keys: Keys, workspace: { index: number; id: string; customers: number }, n: number): Row {
  const plain = customerPlain(workspace.index, n);
  const stored = (column: EncryptedColumn, of: CustomerPlain = plain) => {
    const value = columnValues(of)[column];
    if (value === null) return null;
    const { keyId, version } = sealOf(workspace.index, n / workspace.customers, n, column);
    return encryptValue(keys, keyId, version, [workspace.id, 'klanten', column, of.id], value);
  };
  const row = Object.fromEntries(encryptedColumns.map((column) => [column, stored(column)])) as Record<
    EncryptedColumn,
    string | null
  >;
  for (const damage of corruptCustomers) {
    if (damage.workspaceIndex === workspace.index && damage.n === n) {
      row[damage.column] = damaged(damage, (of) => stored(damage.column, of));
    }
  }
  const land = plain.adres.land;
  return { n, ...row, plain_name: plain.naam, land: land && Buffer.from(land, 'utf8').toString('base64') };
}

function damaged(damage: CorruptCustomer, store: (of: CustomerPlain) => string | null): string | null {
  const own = customerPlain(damage.workspaceIndex, damage.n);
  if (damage.fault === 'value_of_another_row') return store(customerPlain(damage.workspaceIndex, damage.n + 1));
  const stored = store({ ...own, kvkNummer: own.kvkNummer ?? '01234567' });
  if (stored === null) return null;
  return damage.fault === 'bad_tag' ? withBadTag(stored) : truncated(stored);
}

/**
 * The key and version of a stored value. The oldest 30 % of the customers have the first key, half of them version 1;
 * an address that was changed later has the newest key.
 */
function sealOf(
  workspaceIndex: number,
  age: number,
  n: number,
  column: EncryptedColumn,
): { keyId: string; version: 1 | 2 } {
  const draw = random(`zegel/${workspaceIndex}/${n}`);
  const isDamaged = corruptCustomers.some((each) => each.workspaceIndex === workspaceIndex && each.n === n);
  const isLegacy = draw.chance(50) && !isDamaged;
  const hasMoved = draw.chance(6);
  if (hasMoved && ['straat', 'huisnummer', 'postcode', 'plaats'].includes(column)) return { keyId: 'k3', version: 2 };
  if (age <= 0.3) return { keyId: 'k1', version: isLegacy ? 1 : 2 };
  return { keyId: age <= 0.6 ? 'k2' : 'k3', version: 2 };
}

function columnValues(plain: CustomerPlain): Record<EncryptedColumn, string | null> {
  const { land: _, ...address } = plain.adres;
  return {
    naam: plain.naam,
    ...address,
    kvk_nummer: plain.kvkNummer,
    email: plain.email,
    telefoon: plain.telefoon,
  };
}
