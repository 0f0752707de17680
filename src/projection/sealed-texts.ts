import { sealLayout } from './aes-gcm/seal-layout.js';
import { type Codec, templatePieces } from './codec.js';
import { type EncodingName, encodingOf } from './encodings.js';
import { isText } from './json-bytes.js';

/**
 * Makes the test whether a text holds a value as one of these codecs stores it. Such a value is known by its prefix; without one by a
 * run of its digits that is as long as its bytes are at least, or, where it is not encrypted, by a run that decodes to text.
 * In doubt the answer is true, because the audit log then hides the text.
 */
export function sealedTexts(codecs: readonly Codec[]): (text: string) => boolean {
  const tests = codecs.flatMap(testsOf);
  return (text) => tests.some((test) => test(text));
}

type Test = (text: string) => boolean;

/** A shorter prefix stands in plain texts, too. */
const prefixMin = 3;
/** Bytes that a module's value has at least, such as a block of AES and a nonce. */
const moduleBytesMin = 12;
/** A run of 16 characters without a blank, in a text that a module may have made. */
const moduleRun = /\S{16}/;

function testsOf(codec: Codec): Test[] {
  const heads = [codec.prefix, codec.legacyPrefix].flatMap((template) =>
    template === undefined ? [] : [templatePieces(template)[0] as string],
  );
  const marks = heads.filter(({ length }) => length >= prefixMin).map(markOf);
  const isMarked = marks.length > 0 && marks.length === heads.length;
  return [...marks, ...(isMarked ? [] : unmarked[codec.cipher](codec))];
}

/** "enc:v2:" → finds "enc:v": the next version of a format must not show either. */
function markOf(head: string): Test {
  const name = head.replace(/\d+[^\p{L}\d]*$/u, '');
  const mark = (name.length < prefixMin ? head : name).toLowerCase();
  return (text) => text.toLowerCase().includes(mark);
}

/** Tests for values without a prefix, by cipher. */
const unmarked: Readonly<Record<Codec['cipher'], (codec: Codec) => Test[]>> = {
  none: ({ encoding }) =>
    writtenAs(encoding).map((name) => {
      const isEncoded = decodesToText(name);
      return (text) => runsOf(text, name).some((run) => isFound(run, text) && isEncoded(run));
    }),
  'aes-256-gcm': ({ encoding, layout = [] }) => longRuns(encoding, sealLayout(layout)?.overheadBytes ?? moduleBytesMin),
  module: ({ encoding }) =>
    encoding === 'text' ? [(text) => moduleRun.test(text)] : longRuns(encoding, moduleBytesMin),
};

type Digits = Exclude<EncodingName, 'text' | 'bytea'>;

/** Digits of each encoding, and how many of them hold a byte. */
const digits: Readonly<Record<Digits, { readonly run: RegExp; readonly perByte: number }>> = {
  base64: { run: /[A-Za-z0-9+/]+={0,2}/g, perByte: 4 / 3 },
  base64url: { run: /[\w-]+={0,2}/g, perByte: 4 / 3 },
  hex: { run: /(?<=\\x)[\da-f]+|[\da-f]+/gi, perByte: 2 },
};

/** The encodings in which a log can have the value: the log's writer prints bytes in a form of its own. */
function writtenAs(encoding: EncodingName): readonly Digits[] {
  if (encoding === 'text') return [];
  return encoding === 'bytea' ? ['hex', 'base64', 'base64url'] : [encoding];
}

const uuid = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i;

function runsOf(text: string, name: Digits): string[] {
  return (text.match(digits[name].run) ?? []).filter((run) => !uuid.test(run));
}

function longRuns(encoding: EncodingName, bytesMin: number): Test[] {
  return writtenAs(encoding).map((name) => {
    const length = Math.ceil(bytesMin * digits[name].perByte);
    return (text) => text.length >= length && runsOf(text, name).some((run) => run.length >= length);
  });
}

/** Short words of prose can decode to text by chance; a whole text is looked at however short it is. */
function isFound(run: string, text: string): boolean {
  return run.length >= 12 || run === text.trim();
}

function decodesToText(name: Digits): (run: string) => boolean {
  const { decode, bytesMax } = encodingOf(name);
  return (run) => {
    const bytes = Buffer.allocUnsafe(bytesMax(run.length));
    const length = decode(run, 0, bytes, 0);
    // Checked before a string is made: TextDecoder reports other bytes by an exception, and words of prose are often such bytes.
    return length >= 3 && isText(bytes, 0, length) && /^[^\p{Cc}\p{Cn}]+$/u.test(bytes.toString('utf8', 0, length));
  };
}
