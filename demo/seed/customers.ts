import { createCipheriv, randomBytes } from 'node:crypto';
import { type Codec, splitTemplate } from '../../src/resource/projection/codec.js';
import { encryptValue, type Keys } from './encrypt.js';
import { type CustomerPlain, customerPlain } from './plain.js';
import { numberedId, random, seedId } from './random.js';

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

/** The damaged customers of every data set that has so many; those before them, which a reader sees first, are whole. */
export const corruptCustomers: readonly CorruptCustomer[] = [
  { n: 107, id: seedId('klant', 0, 107), column: 'straat', pointer: '/adres/straat', damaged: withBadTag },
  { n: 111, id: seedId('klant', 0, 111), column: 'kvk_nummer', pointer: '/kvkNummer', damaged: truncated },
  { n: 119, id: seedId('klant', 0, 119), column: 'plaats', pointer: '/adres/plaats', damaged: (_, next) => next },
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

/** Makes the customers of the second app, each sealed as one document. */
export function documentCustomers(keys: Keys, codec: Codec): (workspace: SeededWorkspace, n: number) => object {
  return (workspace, n) => sealedCustomer(keys, codec, workspace, n);
}

/** A row of seed_customers. A damaged customer has the cell of the next one, or its own damaged. */
function sealedCustomer(keys: Keys, codec: Codec, { index, customers }: SeededWorkspace, n: number): object {
  const age = n / customers;
  const keyId = age <= 0.3 ? 'k1' : age <= 0.6 ? 'k2' : 'k3';
  const sealed = (number: number): string =>
    sealValue(codec, keys[keyId] as Buffer, { id: numberedId(index, number) }, document(customerPlain(index, number)));
  const corrupt = index === 0 ? corruptCustomers.find((each) => each.n === n) : undefined;
  return {
    workspace: index,
    n,
    plain_name: customerPlain(index, n).naam,
    vault_key: keyId,
    sealed: corrupt === undefined ? sealed(n) : corrupt.damaged(sealed(n), sealed(n + 1)),
  };
}

/** The document of a customer as the second app writes it. */
function document({ naam, adres, kvkNummer, email, telefoon }: CustomerPlain): string {
  const { straat, huisnummer, toevoeging, postcode, plaats, land } = adres;
  const address = {
    street: straat,
    number: huisnummer,
    suffix: toevoeging,
    zip: postcode,
    city: plaats,
    country: land,
  };
  return JSON.stringify({ name: naam, address, registration: kvkNummer, email, phone: telefoon });
}

/** Seals a text as the codec describes; `values` fill the placeholders of its associated data. */
function sealValue(
  { layout = [], encoding, aad = '' }: Codec,
  key: Buffer,
  values: Readonly<Record<string, string>>,
  plaintext: string,
): string {
  const sizeOf = (part: string): number => Number(layout.find((each) => each.startsWith(part))?.slice(part.length));
  const nonce = randomBytes(sizeOf('nonce'));
  const cipher = createCipheriv('aes-256-gcm', key, nonce, { authTagLength: sizeOf('tag') });
  cipher.setAAD(
    Buffer.from(
      splitTemplate(aad)
        .map((piece, i) => (i % 2 === 0 ? piece : values[piece]))
        .join(''),
    ),
  );
  const data = Buffer.concat([cipher.update(plaintext, 'utf8'), cipher.final()]);
  const parts = layout.map((part) => (part === 'data' ? data : part.startsWith('nonce') ? nonce : cipher.getAuthTag()));
  return Buffer.concat(parts).toString(encoding as BufferEncoding);
}
