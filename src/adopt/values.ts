import { areAddresses } from '../check/forms.js';
import { Row } from '../postgres/row.js';
import type { Codec } from '../projection/codec.js';
import { compileCodec } from '../projection/codecs.js';
import { JsonBytes } from '../projection/json-bytes.js';
import type { Keyring } from '../projection/keyring.js';
import { isNamed } from './names.js';

/** A sealed cell and all that its associated data can name. */
export interface SealedCell {
  readonly value: string;
  /** From its column; absent: the prefix holds it, or it is tried with every key. */
  readonly keyId?: string;
  readonly names: Readonly<Record<'workspace' | 'table' | 'column' | 'id', string>>;
}

/** How cells were opened: the keys that a codec lacks, the id of their only data key where no cell names one, and the texts. */
export interface Opened {
  readonly codec: Pick<Codec, 'layout' | 'aad'>;
  readonly keyId: string | undefined;
  readonly texts: string[];
}

const layouts: readonly (readonly string[])[] = ['nonce12', 'nonce16'].flatMap((nonce) => [
  [nonce, 'data', 'tag16'],
  [nonce, 'tag16', 'data'],
  ['tag16', nonce, 'data'],
  ['data', 'tag16', nonce],
  ['data', nonce, 'tag16'],
  ['tag16', 'data', nonce],
]);

/** Names in the order in which apps put them into associated data; RECORD is the table's name in the singular. */
const aadNames = [
  ['{id}'],
  ['{workspace}'],
  ['{workspace}', '{id}'],
  ['{table}', '{id}'],
  ['RECORD', '{id}'],
  ['{column}', '{id}'],
  ['{id}', '{column}'],
  ['{table}', '{column}', '{id}'],
  ['RECORD', '{column}', '{id}'],
  ['{workspace}', '{table}', '{id}'],
  ['{workspace}', 'RECORD', '{id}'],
  ['{workspace}', '{table}', '{column}', '{id}'],
];
const separators = [':', '|', '/', '.'];
const cellsTried = 3;

/** Opens cells with the keys at hand by trying layouts and associated data; undefined when none of them fits. */
export function openCells(
  cells: readonly SealedCell[],
  form: Pick<Codec, 'encoding' | 'prefix'>,
  keyring: Keyring,
  record: string,
): Opened | undefined {
  const templates = [
    undefined,
    ...new Set(aadNames.flatMap((names) => separators.map((by) => names.join(by).replace('RECORD', record)))),
  ];
  const keyIds = form.prefix?.includes('{keyId}')
    ? [undefined]
    : cells.some(({ keyId }) => keyId !== undefined)
      ? [{ column: keyColumn }]
      : keyring.ids;
  for (const keyId of keyIds)
    for (const layout of layouts)
      for (const aad of templates) {
        const opened = { layout, ...(aad !== undefined && { aad }) };
        const codec: Codec = { cipher: 'aes-256-gcm', ...form, ...(keyId !== undefined && { keyId }), ...opened };
        if (textsOf(cells.slice(0, cellsTried), codec, keyring).length === 0) continue;
        return {
          codec: opened,
          keyId: typeof keyId === 'string' ? keyId : undefined,
          texts: textsOf(cells, codec, keyring),
        };
      }
  return undefined;
}

/** The name of the column of key ids in the rows that are tried. */
const keyColumn = 'key';

/** The texts of the cells that the codec opens, as the gateway opens them. */
function textsOf(cells: readonly SealedCell[], codec: Codec, keyring: Keyring): string[] {
  const options = { keyring, legacy: true, decrypt: 'native', reportMismatch: () => undefined } as const;
  return cells.flatMap(({ value, keyId = null, names }) => {
    const columns = [{ name: names.column, at: 0 }];
    const decoder = compileCodec(codec, options, { table: names.table, columns, others: new Map([[keyColumn, 1]]) });
    const json = new JsonBytes(value.length);
    try {
      decoder.startRow(Row.of([value, keyId]), names.workspace, names.id);
      decoder.writeCell(0, json);
      return [JSON.parse(json.toString()) as string];
    } catch {
      return []; // another key, layout or AAD
    }
  });
}

/** Whether the name speaks of personal data or of secrets. */
export const isPersonal = (name: string): boolean =>
  isNamed('contact', name) || isNamed('birth', name) || isNamed('secret', name);

/** Whether the value has a member of such a name, at any depth and in texts that are JSON; one that says yes or no tells nothing. */
export function hasPersonal(value: unknown): boolean {
  if (typeof value === 'string') return /^\s*[[{]/.test(value) && hasPersonal(parsed(value));
  if (typeof value !== 'object' || value === null) return false;
  return Object.entries(value).some(
    ([name, member]) => (isPersonal(name) && typeof member !== 'boolean') || hasPersonal(member),
  );
}

/** Why no field shows a column, by its values; undefined: one does. */
export function reasonByValues(values: readonly string[]): string | undefined {
  if (areAddresses(values)) return 'e-mail addresses, by the values';
  if (values.some(isPersonalDocument)) return 'documents with personal data, by the names of their members';
  return undefined;
}

/** How documents begin, and the names of their members: JSON that the sample has cut, hstore, YAML, XML, and PHP's own form. */
const documents: readonly (readonly [begins: RegExp, names: RegExp])[] = [
  [/^\s*[[{]/, /"([^"\\]{1,100})"\s*:(?!\s*(?:true|false)\b)/g],
  [/^"[^"]*"=>/, /"([^"\\]{1,100})"=>/g],
  [/^---\s/, /^[ \t-]*:?["']?(\w[\w .-]{0,100}?)["']?:(?!\s*(?:true|false)\b)/gm],
  [/^\s*</, /<([\w.-]{1,100})/g],
  [/^[aO]:\d+:/, /s:\d+:"([^"]{1,100})";(?!b:)/g],
];

function isPersonalDocument(text: string): boolean {
  const [, names] = documents.find(([begins]) => begins.test(text)) ?? [];
  if (names === undefined) return false;
  const value = parsed(text);
  return value === undefined ? [...text.matchAll(names)].some(([, name = '']) => isPersonal(name)) : hasPersonal(value);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
