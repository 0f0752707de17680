import { sealLayout } from './aes-gcm/seal-layout.js';
import { type Codec, formatMin, formatOf, headsOf } from './codec.js';
import { type EncodingName, encodingOf } from './encodings.js';
import { isText } from './json-bytes.js';
import { byteSet, hasRun } from './number-lists.js';

/** Tests of texts for values as codecs store them. */
export interface SealedTexts {
  /** Whether a text holds such a value. In doubt the answer is true, because the audit log then hides the text. */
  readonly areIn: (text: string) => boolean;
  /** In lower case; a text with one of them holds such a value. */
  readonly marks: readonly string[];
  /** Whether a text of ASCII and À to ÿ without a mark can hold such a value: far cheaper, without making a string. */
  readonly mayBeIn: BytesTest;
}

/**
 * Makes the tests for these codecs. A stored value is known by its prefix; without one by a run of its digits that is as
 * long as its bytes are at least, or, where it is not encrypted, by a run that decodes to text.
 */
export function sealedTexts(codecs: readonly Codec[]): SealedTexts {
  const marks = [...new Set(codecs.flatMap(marksOf))];
  const tests = codecs.flatMap((codec) => (isMarked(codec) ? [] : unmarked[codec.cipher](codec)));
  return {
    areIn: (text) => {
      const lower = text.toLowerCase();
      return marks.some((mark) => lower.includes(mark)) || tests.some(({ isIn }) => isIn(text));
    },
    marks,
    mayBeIn: (bytes, start, end) => tests.some(({ mayBeIn }) => mayBeIn(bytes, start, end)),
  };
}

type BytesTest = (bytes: Buffer, start: number, end: number) => boolean;

interface Test {
  readonly isIn: (text: string) => boolean;
  /** The same question about ASCII and À to ÿ, where false is sure. */
  readonly mayBeIn: BytesTest;
}

const alphanumeric = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';

/** Bytes that a module's value has at least, such as a block of AES and a nonce. */
const moduleBytesMin = 12;
/** A run of 16 characters without a blank, in a text that a module may have made. */
const moduleRun = /\S{16}/;
/** A byte that is not ASCII is part of a character, which is taken for no blank. */
const notBlank = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte >= 0x80 || /\S/.test(String.fromCharCode(byte)) ? 1 : 0,
);

function marksOf(codec: Codec): string[] {
  return headsOf(codec)
    .filter(({ length }) => length >= formatMin)
    .map((head) => formatOf(head).toLowerCase()); // nor must the next version of a format show
}

/** Whether each stored value has a mark. */
function isMarked(codec: Codec): boolean {
  const heads = headsOf(codec);
  return heads.length > 0 && heads.every(({ length }) => length >= formatMin);
}

/** Tests for values without a prefix, by cipher. */
const unmarked: Readonly<Record<Codec['cipher'], (codec: Codec) => Test[]>> = {
  none: ({ encoding }) => writtenAs(encoding).map(decodableRuns),
  'aes-256-gcm': ({ encoding, layout = [] }) => longRuns(encoding, sealLayout(layout)?.overheadBytes ?? moduleBytesMin),
  module: ({ encoding }) =>
    encoding === 'text'
      ? [
          {
            isIn: (text) => moduleRun.test(text),
            mayBeIn: (bytes, start, end) => hasRun(notBlank, 16, bytes, start, end),
          },
        ]
      : longRuns(encoding, moduleBytesMin),
};

type Digits = Exclude<EncodingName, 'text' | 'bytea'>;

/** Digits of each encoding, and how many of them hold a byte. */
const digits: Readonly<Record<Digits, { readonly run: RegExp; readonly set: Uint8Array; readonly perByte: number }>> = {
  base64: {
    run: /[A-Za-z0-9+/]+={0,2}/g,
    set: byteSet(`${alphanumeric}+/=`),
    perByte: 4 / 3,
  },
  base64url: { run: /[\w-]+={0,2}/g, set: byteSet(`${alphanumeric}_-=`), perByte: 4 / 3 },
  hex: { run: /(?<=\\x)[\da-f]+|[\da-f]+/gi, set: byteSet('0123456789abcdefABCDEF'), perByte: 2 },
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
    const { perByte, set } = digits[name];
    const length = Math.ceil(bytesMin * perByte);
    return {
      isIn: (text) => text.length >= length && runsOf(text, name).some((run) => run.length >= length),
      mayBeIn: (bytes, start, end) => hasRun(set, length, bytes, start, end),
    };
  });
}

function decodableRuns(name: Digits): Test {
  const { set } = digits[name];
  const isEncoded = decodesToText(name);
  const hasEncoded: BytesTest = (bytes, start, end) => {
    for (let from = start; from < end; ) {
      let at = from;
      while (at < end && set[bytes[at] as number] === 1 && bytes[at] !== padding) at++;
      for (let pads = 0; at < end && bytes[at] === padding && pads < 2; pads++) at++;
      const isWhole = from === start && at === end;
      if ((isWhole || at - from >= foundRunMin) && isEncoded(bytes, from, at)) return true;
      from = Math.max(at, from + 1);
    }
    return false;
  };
  return {
    isIn: (text) => runsOf(text, name).some((run) => isFound(run, text) && isEncoded(Buffer.from(run), 0, run.length)),
    mayBeIn: (bytes, start, end) => isBlank(bytes[start]) || isBlank(bytes[end - 1]) || hasEncoded(bytes, start, end),
  };
}

const foundRunMin = 12;
/** Up to this length a run is decoded into the same buffer again and again. */
const shortRunMax = 128;
const padding = 0x3d; // "="

/** Short words of prose can decode to text by chance; a whole text is looked at however short it is. */
function isFound(run: string, text: string): boolean {
  return run.length >= foundRunMin || run === text.trim();
}

function isBlank(byte: number | undefined): boolean {
  return byte !== undefined && byte <= 0x20;
}

function decodesToText(name: Digits): BytesTest {
  const { decode, bytesMax } = encodingOf(name);
  const reused = Buffer.allocUnsafe(bytesMax(shortRunMax));
  return (run, start, end) => {
    const bytes = end - start > shortRunMax ? Buffer.allocUnsafe(bytesMax(end - start)) : reused;
    const length = decode(run, start, end, bytes, 0);
    // Checked before a string is made: TextDecoder reports other bytes by an exception, and words of prose are often such bytes.
    return length >= 3 && isText(bytes, 0, length) && /^[^\p{Cc}\p{Cn}]+$/u.test(bytes.toString('utf8', 0, length));
  };
}
