import { createCipheriv, randomBytes } from 'node:crypto';
import { type Codec, templatePieces } from '../../src/projection/codec.js';
import { corruptCustomers, type SeededWorkspace } from './customers.js';
import type { Keys } from './encrypt.js';
import { type CustomerPlain, customerPlain } from './plain.js';
import { numberedId } from './random.js';

/** Makes the customers of the second app, each sealed as one document. */
export function documentCustomers(keys: Keys, codec: Codec): (workspace: SeededWorkspace, n: number) => object {
  return (workspace, n) => storedCustomer(keys, codec, workspace, n);
}

/** A row of seed_customers. A damaged customer has the cell of the next one, or its own damaged. */
function storedCustomer(keys: Keys, codec: Codec, { index, customers }: SeededWorkspace, n: number): object {
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
      templatePieces(aad)
        .map((piece, i) => (i % 2 === 0 ? piece : values[piece]))
        .join(''),
    ),
  );
  const data = Buffer.concat([cipher.update(plaintext, 'utf8'), cipher.final()]);
  const parts = layout.map((part) => (part === 'data' ? data : part.startsWith('nonce') ? nonce : cipher.getAuthTag()));
  return Buffer.concat(parts).toString(encoding as BufferEncoding);
}
