import { sealLayout } from '../projection/aes-gcm/gcm-key.js';
import { aadPlaceholders, type Codec, headsOf, templatePieces } from '../projection/codec.js';
import type { Examined, Flaw } from './contradictions.js';

/** Everything in which the codecs of a definition contradict themselves or its fields. */
export function contradictionsOfCodecs(examined: Examined): Flaw[] {
  return Object.entries(examined.file.codecs).flatMap(([name, codec]) =>
    [keys, keySource, shape, prefixes, associatedData, keyColumn, olderValues]
      .flatMap((rule) => rule(codec, examined))
      .map((flaw) => ({ ...flaw, at: `/codecs/${name}${flaw.at}` })),
  );
}

const keyIdPlaceholder = '{keyId}';
const afterKeyId = /^[^A-Za-z0-9_.-]/;

/** Keys that mean nothing to a cipher. */
const meaningless: Readonly<Record<Codec['cipher'], readonly (keyof Codec)[]>> = {
  none: ['legacyPrefix', 'keyId', 'layout', 'aad'],
  'aes-256-gcm': [],
  module: ['legacyPrefix', 'layout', 'aad'],
};

function keys(codec: Codec): Flaw[] {
  return meaningless[codec.cipher]
    .filter((key) => codec[key] !== undefined)
    .map((key) => ({ at: `/${key}`, wrong: `cipher ${codec.cipher} has no ${key}`, remedy: 'remove it' }));
}

/** The id of the key stands in exactly one place. */
function keySource({ cipher, prefix = '', keyId }: Codec): Flaw[] {
  const inPrefix = prefix.includes(keyIdPlaceholder);
  if (inPrefix && keyId !== undefined)
    return [{ at: '/keyId', wrong: 'the prefix has the id of the key, too', remedy: 'remove one of them' }];
  if (inPrefix && cipher === 'none')
    return [{ at: '/prefix', wrong: 'cipher none has no key', remedy: `remove ${keyIdPlaceholder}` }];
  if (cipher !== 'aes-256-gcm' || inPrefix || keyId !== undefined) return [];
  const remedy = `put ${keyIdPlaceholder} into the prefix, or set keyId`;
  return [{ at: '', wrong: 'nothing says which key seals a value', remedy }];
}

function shape({ cipher, encoding, layout = [], prefix }: Codec): Flaw[] {
  const isSealed = cipher === 'aes-256-gcm';
  return [
    ...(isSealed && sealLayout(layout) === null
      ? [
          {
            at: '/layout',
            wrong: 'it does not have nonce, data and tag, each once',
            remedy: 'write it such as ["nonce12", "data", "tag16"]',
          },
        ]
      : []),
    ...(isSealed && encoding === 'text'
      ? [{ at: '/encoding', wrong: 'sealed bytes are no text', remedy: 'use base64, base64url, hex or bytea' }]
      : []),
    ...(encoding === 'bytea' && prefix !== undefined
      ? [{ at: '/prefix', wrong: 'a bytea has no text before its bytes', remedy: 'remove it' }]
      : []),
  ];
}

function prefixes({ prefix, legacyPrefix, aad }: Codec): Flaw[] {
  const flaws = Object.entries({ prefix, legacyPrefix }).flatMap(([key, template]): Flaw[] => {
    const [head, name, tail, ...more] = templatePieces(template ?? '');
    const at = `/${key}`;
    if (
      [head, tail, ...more].some((text) => /[{}]/.test(text ?? '')) ||
      more.length > 0 ||
      (name ?? 'keyId') !== 'keyId'
    )
      return [{ at, wrong: `it has braces other than one ${keyIdPlaceholder}`, remedy: 'remove them' }];
    if (tail === undefined || afterKeyId.test(tail)) return [];
    return [
      {
        at,
        wrong: `nothing ends ${keyIdPlaceholder}`,
        remedy: 'put a character behind it that no key id has, such as :',
      },
    ];
  });
  if (legacyPrefix === undefined || flaws.length > 0) return flaws;
  const at = '/legacyPrefix';
  const [[head = '', keyId], [legacyHead = '', legacyKeyId]] = [
    templatePieces(prefix ?? ''),
    templatePieces(legacyPrefix),
  ];
  if (legacyHead.startsWith(head))
    flaws.push({ at, wrong: 'a legacy value begins as others do', remedy: 'give both another beginning' });
  if (keyId !== legacyKeyId)
    flaws.push({ at, wrong: `only one of both prefixes has ${keyIdPlaceholder}`, remedy: 'use it in both or in none' });
  if (aad === undefined)
    flaws.push({ at, wrong: 'values without aad are legacy, and none has it', remedy: 'set aad, or remove it' });
  return flaws;
}

function associatedData({ aad = '' }: Codec, { columns }: Examined): Flaw[] {
  const at = '/aad';
  return templatePieces(aad).flatMap((piece, i): Flaw[] => {
    if (i % 2 === 0) {
      return /[{}]/.test(piece) ? [{ at, wrong: 'it has a brace that is no placeholder', remedy: 'remove it' }] : [];
    }
    if (aadPlaceholders.includes(piece)) return [];
    if (!/^[a-z_][a-z0-9_]{0,62}$/.test(piece)) {
      const remedy = `use ${aadPlaceholders.join(', ')} or the name of a column`;
      return [{ at, wrong: `there is no placeholder {${piece}}`, remedy }];
    }
    const field = columns.get(piece)?.field;
    return [
      ...(field?.codec ? [{ at, wrong: `column ${piece} is encoded`, remedy: 'use another column' }] : []),
      ...(field?.write
        ? [{ at, wrong: `column ${piece} can be written, which breaks its values`, remedy: 'use another column' }]
        : []),
    ];
  });
}

/** The older values of a codec can be told from the others, and have no older ones themselves. */
function olderValues(codec: Codec, { file: { codecs } }: Examined): Flaw[] {
  if (codec.older === undefined) return [];
  const older = Object.hasOwn(codecs, codec.older) ? codecs[codec.older] : undefined;
  const flaw = (wrong: string, remedy: string): Flaw[] => [{ at: '/older', wrong, remedy }];
  if (older === undefined) return flaw(`there is no codec ${codec.older}`, `use ${Object.keys(codecs).join(', ')}`);
  if (older.older !== undefined) return flaw(`${codec.older} has older values, too`, 'remove one of them');
  if ((older.encoding === 'bytea') !== (codec.encoding === 'bytea'))
    return flaw('a column is either a bytea or a text', 'use a codec of the same kind of column');
  const [own, others] = [headsOf(codec), headsOf(older)];
  if (own.length + others.length === 0) return flaw('no prefix tells older values from others', 'set a prefix');
  return own.some((head) => others.some((other) => head.startsWith(other)))
    ? flaw('an older value begins as others do', 'give both another beginning')
    : [];
}

function keyColumn({ keyId }: Codec, { columns }: Examined): Flaw[] {
  if (typeof keyId !== 'object') return [];
  const field = columns.get(keyId.column)?.field;
  const at = '/keyId/column';
  const flaw = (wrong: string): Flaw => ({
    at,
    wrong: `column ${keyId.column} ${wrong}`,
    remedy: 'use another column',
  });
  return [
    ...(field?.codec ? [flaw('is encoded')] : []),
    ...(field?.write ? [flaw('can be written, which breaks its values')] : []),
  ];
}
