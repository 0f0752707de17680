import { randomBytes } from 'node:crypto';
import test from 'ava';
import { viewWords } from '../../src/postgres/row.js';
import { holdsImage } from '../../src/resource/projection/images.js';
import { JsonBytes } from '../../src/resource/projection/json-bytes.js';
import { makeShapeAppender } from '../../src/resource/serializer/shapes.js';
import { limitMs } from '../support/patience.js';

const heads: Readonly<Record<string, string>> = {
  png: '89504e470d0a1a0a0000000d49484452',
  jpeg: 'ffd8ffe000104a46494600010101006000600000',
  gif: '474946383961',
  webp: '52494646aabbccdd574542505650382000',
  bmp: '424daabbccdd0000000036000000',
  tiff: '49492a0008000000',
  tiffOfMotorola: '4d4d002a00000008',
  heic: '000000186674797068656963',
  svg: '3c73766720786d6c6e733d22',
};
const wrap = (text: string, every: number, by: string): string =>
  text.replace(new RegExp(`.{${every}}`, 'g'), `$&${by}`);

for (const [kind, head] of Object.entries(heads)) {
  test(`a text that is or holds an image (${kind}) in base64 is found, a short text is not`, (t) => {
    const bytes = Buffer.concat([Buffer.from(head, 'hex'), randomBytes(300)]);
    const base64 = bytes.toString('base64');
    const wrapped = [wrap(base64, 76, '\r\n'), wrap(base64, 64, '\n'), wrap(base64, 4, ' '), `\n  ${base64}`];
    for (const text of [base64, bytes.toString('base64url'), ...wrapped, `Getekend: ${base64} te Utrecht`])
      t.true(holdsImage(text), text.slice(0, 60));
    t.false(holdsImage(base64.slice(0, 200)));
  });
}

test('a data URL is found, also inside a text, and prose that begins with the word is shown', (t) => {
  const long = 'a'.repeat(300);
  for (const text of [
    `data:image/png;base64,${long}`,
    ` DATA:image/svg+xml,${long}`,
    `data:,${long}`,
    `data:;charset=utf-8,${long}`,
    `Data:Image/PNG;Charset="UTF-8";BASE64,${long}`,
    `\r\n\tdata:application/vnd.app+xml;name=foto%201.xml;x='a',${long}\n`,
    `data:text/html;name="foto 1, boven.htm";base64,${long}`,
    `op data:image/x ${long}`,
  ])
    t.true(holdsImage(text), text.slice(0, 60));
  for (const begin of [
    'Data: 12 maart, lek',
    'data:\n 12, 13',
    'Data:12 maart, lek',
    'DATA:lek in kamer;12, 13',
    'data:lek,',
    'data: a/b,',
  ])
    t.false(holdsImage(`${begin} ${'gevonden bij de koeling. '.repeat(20)}`), begin);
});

test('prose, codes, keys and digests are no images, and a long text is judged in time that grows with its length', (t) => {
  const prose = 'Lekcontrole volgens EN 378, druk 18/4,2 bar < 20 & 80% vochtigheid; data: geen "lek" gevonden.\n';
  for (const text of [prose.repeat(9), 'woord '.repeat(2000), 'abcdef0123456789'.repeat(20), 'SERIE9j'.repeat(60)])
    t.false(holdsImage(text), text.slice(0, 40));
  const began = performance.now();
  for (const piece of ['a', '/9', 'a ', 'iVBORw ', 'data', ';base64']) holdsImage(piece.repeat(300_000));
  for (const piece of ['a', ' ', 'ab\n'])
    t.false(holdsImage(piece.repeat(8_000_000 / piece.length)), 'no stack overflows');
  t.true(performance.now() - began < limitMs(3000));
});

test('escapes of JSON hide no image, and what is around it is shown', (t) => {
  const png = Buffer.from(heads.png as string, 'hex').toString('base64') + 'A'.repeat(300);
  const jpeg = `/9j/${'A'.repeat(300)}`;
  const stored = `{"a": [1, "${jpeg.replaceAll('/', '\\/')}", "x"], "b": "\\u0064ata:image/png;base64,${png}", "c": "\\n${png}"}`;
  const json = new JsonBytes(1);
  const bytes = Buffer.from(stored);
  makeShapeAppender({ type: 'json', show: ['/a', '/b', '/c'] })({ bytes, words: viewWords(bytes) }, 0, json);
  t.is(json.toString(), '{"a":[1,null,"x"],"b":null,"c":null}');
});

test('lists nested deeper than any call stack are left out', (t) => {
  const bytes = Buffer.from(`{"a": 1, "b": ${'['.repeat(100_000)}1${']'.repeat(100_000)}}`);
  const json = new JsonBytes(1);
  makeShapeAppender({ type: 'json', show: ['/a', '/b'] })({ bytes, words: viewWords(bytes) }, 0, json);
  t.like(JSON.parse(json.toString()), { a: 1 });
});
