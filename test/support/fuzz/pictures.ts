import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { projectRoot } from '../../../src/base/paths.js';
import { canary } from './canaries.js';

const images = JSON.parse(readFileSync(join(projectRoot, 'sql/apps/first/seed/images.json'), 'utf8'));

/** Apps put pictures into JSON in these ways; each picture ends in a canary that no token may see. */
export function pictures(workspace: number): unknown[] {
  const ending = Buffer.from(`${canary(workspace, 'never')}${'.'.repeat(60)}`);
  const [pngBytes, jpegBytes] = [images.initials[0], images.photo[0]].map((image: string) =>
    Buffer.concat([Buffer.from(image, 'base64'), ending]),
  ) as [Buffer, Buffer];
  const gif = Buffer.concat([Buffer.from('GIF89a\x10\0\x08\0', 'latin1'), ending]);
  const webp = Buffer.concat([Buffer.from('RIFF\x60\0\0\0WEBPVP8 ', 'latin1'), ending]);
  const base64 = pngBytes.toString('base64');
  return [
    base64,
    jpegBytes.toString('base64'),
    gif.toString('base64'),
    webp.toString('base64'),
    pngBytes.toString('base64url'),
    base64.replace(/.{76}/g, '$&\r\n'),
    `data:image/png;base64,${base64}`,
    `Getekend: data:image/jpeg;base64,${jpegBytes.toString('base64')} te Utrecht`,
    encodeURIComponent(`data:image/png;base64,${base64}`),
    pngBytes.toString('hex'),
    jpegBytes.toString('hex').toUpperCase(),
    [...pngBytes],
    { ...pngBytes },
    { type: 'Buffer', data: [...jpegBytes] },
    JSON.stringify({ beeld: base64 }),
    JSON.stringify({ diep: [JSON.stringify({ beeld: [...pngBytes] })] }),
    `<svg xmlns="http://www.w3.org/2000/svg"><text>${canary(workspace, 'never')}</text></svg>`,
    Buffer.from(`<svg xmlns="http://www.w3.org/2000/svg"><text>${canary(workspace, 'never')}</text></svg>`).toString(
      'base64',
    ),
    { [base64]: true },
    [{ a: [{ b: [base64] }] }],
  ];
}

/** Signs of a picture in a response, found without the gateway's own detector and without parsing. */
export const pictureMarks =
  /iVBORw0KGgo|(?:\\?\/|_)9j(?:\\?\/|_)[A-Za-z0-9+/_-]{20}|R0lGOD|UklGR[A-Za-z0-9+/_-]{10}|data(?::|%3a)image|<svg|PHN2Zy|89504e470d0a|ffd8ffe0|47494638|137,\s*80,\s*78,\s*71|255,\s*216,\s*255|"0":\s*137/i;
