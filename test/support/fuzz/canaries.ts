import { randomBytes } from 'node:crypto';

export type CanaryKind = 'customer' | 'installation' | 'readonly' | 'workorder' | 'log' | 'never';

export interface Found {
  /** It is -1 if it cannot be told. */
  readonly workspace: number;
  readonly kind: CanaryKind | 'encoded';
}

const mark = 'canary.w';

export function canary(workspace: number, kind: CanaryKind): string {
  return `${mark}${workspace}.${kind}.${randomBytes(4).toString('hex')}`;
}

const plain = /canary\.w(\d+)\.([a-z]+)/gi;
const encoded = new RegExp(
  [
    ...[0, 1, 2].map((offset) => base64Within(offset)),
    Buffer.from(mark).toString('hex'),
    [...Buffer.from('canary')].join(String.raw`\s*,\s*`),
  ].join('|'),
  'i',
);

export function canariesIn(text: string): Found[] {
  const found = new Map<string, Found>();
  if (text.includes('anary')) {
    for (const [, workspace, kind] of text.matchAll(plain))
      found.set(`${workspace}.${kind}`, { workspace: Number(workspace), kind: kind as CanaryKind });
  }
  if (encoded.test(text)) found.set('encoded', { workspace: -1, kind: 'encoded' });
  return [...found.values()];
}

/** Base64 of a text always has these characters if the mark begins `offset` bytes after a group of three. */
function base64Within(offset: number): string {
  const text = Buffer.concat([Buffer.alloc(offset), Buffer.from(mark)]).toString('base64');
  return text.slice(Math.ceil((offset * 8) / 6), Math.floor(((offset + mark.length) * 8) / 6));
}
