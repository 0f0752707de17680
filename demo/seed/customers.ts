import { encryptValue, type Keys } from './encrypt.js';
import { type CustomerPlain, customerPlain } from './plain.js';
import { random, seedId } from './random.js';

const encryptedColumns = 'naam straat huisnummer toevoeging postcode plaats kvk_nummer email telefoon'.split(' ');
/** Columns of an address that was changed later. */
const movedColumns = ['straat', 'huisnummer', 'postcode', 'plaats'];

/** A workspace that is being seeded. */
export interface SeededWorkspace {
  readonly index: number;
  readonly id: string;
  readonly customers: number;
}

/** A customer of the first workspace with one stored value that cannot be decoded, put there on purpose. */
export interface CorruptCustomer {
  /** Number of the customer, as for customerPlain. */
  readonly n: number;
  readonly id: string;
  /** Column of app.klanten that holds the damaged value. */
  readonly column: string;
  /** The same field in the API's record, as a JSON pointer (RFC 6901). */
  readonly pointer: string;
  /** The damaged value, from the stored value of this customer and of the next customer. */
  readonly damaged: (own: string, next: string) => string;
}

/** The damaged customers of every data set. */
export const corruptCustomers: readonly CorruptCustomer[] = [
  { n: 7, id: seedId('klant', 0, 7), column: 'straat', pointer: '/adres/straat', damaged: withBadTag },
  { n: 11, id: seedId('klant', 0, 11), column: 'kvk_nummer', pointer: '/kvkNummer', damaged: truncated },
  { n: 19, id: seedId('klant', 0, 19), column: 'plaats', pointer: '/adres/plaats', damaged: (_, next) => next },
];

/** Makes the customers of the first app, each of their values encrypted by itself. */
export function encryptedCustomers(keys: Keys): (workspace: SeededWorkspace, n: number) => object {
  return (workspace, n) => storedCustomer(keys, workspace, n);
}

/** A row of seed_customers. */
function storedCustomer(keys: Keys, workspace: SeededWorkspace, n: number): Record<string, unknown> {
  const plain = customerPlain(workspace.index, n);
  const corrupt = workspace.index === 0 ? corruptCustomers.find((each) => each.n === n) : undefined;
  const seal = sealOf(workspace, n, corrupt !== undefined);
  const stored = (column: string, of: CustomerPlain = plain): string | null => {
    const value = columnValues(of)[column];
    if (value == null) return null;
    const { keyId, version } = seal(column);
    return encryptValue(keys, keyId, version, [workspace.id, 'klanten', column, of.id], value);
  };
  const row = Object.fromEntries(encryptedColumns.map((column) => [column, stored(column)]));
  if (corrupt !== undefined) {
    const own = stored(corrupt.column, { ...plain, kvkNummer: plain.kvkNummer ?? '01234567' });
    const next = stored(corrupt.column, customerPlain(0, n + 1));
    row[corrupt.column] = corrupt.damaged(own ?? '', next ?? '');
  }
  const { land } = plain.adres;
  const landStored = land && Buffer.from(land, 'utf8').toString('base64');
  return { workspace: workspace.index, n, plain_name: plain.naam, land: landStored, ...row };
}

/** Flips the last bit of the authentication tag. */
function withBadTag(stored: string): string {
  const prefix = stored.slice(0, stored.lastIndexOf(':') + 1);
  const sealed = Buffer.from(stored.slice(prefix.length), 'base64');
  sealed.writeUInt8(sealed.readUInt8(sealed.length - 1) ^ 1, sealed.length - 1);
  return prefix + sealed.toString('base64');
}

/** Cuts the value off in the middle of a base64 group, as a column that was once too narrow does. */
function truncated(stored: string): string {
  return stored.slice(0, stored.lastIndexOf(':') + 1 + 21);
}

/**
 * The key and version of a customer's stored values, by column. The oldest 30 % of the customers have the first key, half of
 * them version 1; an address that was changed later has the newest key.
 */
function sealOf({ index, customers }: SeededWorkspace, n: number, isCorrupt: boolean) {
  const draw = random(`zegel/${index}/${n}`);
  const isLegacy = draw.chance(50) && !isCorrupt;
  const hasMoved = draw.chance(6);
  const age = n / customers;
  return (column: string): { keyId: string; version: 1 | 2 } => {
    if (hasMoved && movedColumns.includes(column)) return { keyId: 'k3', version: 2 };
    if (age <= 0.3) return { keyId: 'k1', version: isLegacy ? 1 : 2 };
    return { keyId: age <= 0.6 ? 'k2' : 'k3', version: 2 };
  };
}

function columnValues({ naam, adres, kvkNummer, email, telefoon }: CustomerPlain): Record<string, string | null> {
  return { naam, ...adres, kvk_nummer: kvkNummer, email, telefoon };
}
