import { seedId } from './random.js';

/** A customer with one stored value that cannot be decoded, put there on purpose. */
export interface CorruptCustomer {
  workspaceIndex: number;
  /** Number of the customer, as for customerPlain. */
  n: number;
  id: string;
  /** Column of app.klanten that holds the damaged value. */
  column: 'straat' | 'kvk_nummer' | 'plaats';
  /** The same field in the API's record, as a JSON pointer (RFC 6901). */
  pointer: string;
  fault: 'bad_tag' | 'truncated_base64' | 'value_of_another_row';
}

/** The damaged customers of every data set: three, all in the first workspace. */
export const corruptCustomers: readonly CorruptCustomer[] = [
  corrupt(7, 'straat', '/adres/straat', 'bad_tag'),
  corrupt(11, 'kvk_nummer', '/kvkNummer', 'truncated_base64'),
  corrupt(19, 'plaats', '/adres/plaats', 'value_of_another_row'),
];

/** Flips the last bit of the authentication tag. */
export function withBadTag(stored: string): string {
  const prefix = stored.slice(0, stored.lastIndexOf(':') + 1);
  const sealed = Buffer.from(stored.slice(prefix.length), 'base64');
  sealed.writeUInt8(sealed.readUInt8(sealed.length - 1) ^ 1, sealed.length - 1);
  return prefix + sealed.toString('base64');
}

/** Cuts the value off in the middle of a base64 group, as a column that was once too narrow does. */
export function truncated(stored: string): string {
  return stored.slice(0, stored.lastIndexOf(':') + 1 + 21);
}

function corrupt(
  n: number,
  column: CorruptCustomer['column'],
  pointer: string,
  fault: CorruptCustomer['fault'],
): CorruptCustomer {
  return { workspaceIndex: 0, n, id: seedId('klant', 0, n), column, pointer, fault };
}
