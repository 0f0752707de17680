/**
 * It is stricter than the gateway's detector, and independent of it: a text as it is, as JSON of its own, without line breaks, and
 * decoded.
 */
export function imagesIn(json: string): string[] {
  const found: string[] = [];
  look(JSON.parse(json), '', found);
  return found;
}

const magics = '89504e470d0a1a0a ffd8ff 474946383761 474946383961 424d 52494646 49492a00 4d4d002a'.split(' ');
const strongMagics = magics.slice(0, 4);

function look(value: unknown, path: string, found: string[]): void {
  if (typeof value === 'string') lookAtText(value, path, found);
  if (typeof value !== 'object' || value === null) return;
  const bytes = Object.values(value);
  if (bytes.length > 8 && bytes.every((byte) => Number.isInteger(byte) && byte >= 0 && byte < 256))
    if (isImage(Buffer.from(bytes as number[]))) found.push(`${path}: bytes`);
  for (const [name, member] of Object.entries(value)) {
    if (name.length > 60) lookAtText(name, `${path}/(name)`, found);
    look(member, `${path}/${name.slice(0, 30)}`, found);
  }
}

function lookAtText(text: string, path: string, found: string[]): void {
  if (text.length < 20) return;
  if (/data\s*:\s*image|<svg/i.test(text)) found.push(`${path}: mark-up`);
  for (const run of text.replace(/\s+/g, '').match(/[A-Za-z0-9+/_-]{24,}={0,2}/g) ?? []) {
    for (let skip = 0; skip < 4; skip++)
      if (isImage(Buffer.from(run.slice(skip), 'base64'))) found.push(`${path}: base64`);
    if (isImage(Buffer.from(run, 'hex'))) found.push(`${path}: hexadecimal`);
    if (run.length > 300) found.push(`${path}: ${run.length} characters on end`);
  }
  if (/^\s*[[{"]/.test(text)) {
    try {
      look(JSON.parse(text), `${path}/(json)`, found);
    } catch {
      return; // a text that only begins like JSON
    }
  }
}

function isImage(bytes: Buffer): boolean {
  const hex = bytes.subarray(0, 16).toString('hex');
  if (strongMagics.some((magic) => hex.startsWith(magic))) return true;
  // The shorter ones occur by chance; they count only in what is long enough to be a picture.
  return bytes.length > 200 && magics.some((magic) => hex.startsWith(magic));
}
