import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { projectRoot } from '../../src/paths.js';
import type { Settings } from '../../src/settings.js';
import { commandLine, connections } from '../support/command-line.js';
import { gatewayTest } from '../support/workspace.js';

// The files of the production image, put together as the Dockerfile says, with this machine's Node and packages.

const test = gatewayTest();
const image = mkdtempSync(join(tmpdir(), 'image-'));

test.before(() => {
  const text = readFileSync(join(projectRoot, 'Dockerfile'), 'utf8');
  const lastStage = text.slice(text.lastIndexOf('\nFROM '));
  const copies = [...lastStage.matchAll(/^COPY (?:--from=build \/build\/)?([^-].*) (\S+)$/gm)];
  for (const [, sources = '', target = ''] of copies) {
    for (const source of sources.split(' '))
      cpSync(join(projectRoot, source), join(image, target === './' ? source : target), { recursive: true });
  }
  for (const removed of /&& rm -rf (.*)/.exec(text)?.[1]?.split(' ') ?? [])
    rmSync(join(image, removed), { recursive: true });
  symlinkSync(join(projectRoot, 'node_modules'), join(image, 'node_modules'));
});
test.after.always(() => rmSync(image, { recursive: true }));

const run = (args: string[], settings: Partial<Settings> = {}) => commandLine(args, settings, image);

test('the image has neither the demo nor the reference app', (t) => {
  for (const path of ['dist/src/demo', 'config/demo.json', 'config/demo.txt', 'sql/apps', 'test', 'bench'])
    t.false(existsSync(join(image, path)), path);
});

test('help, settings and the hint at the demo work in the image', async (t) => {
  const help = await run(['--help']);
  t.is(help.code, 0, help.stdout);
  for (const command of ['serve', 'demo', 'check', 'migrate', 'views', 'tokens'])
    t.regex(help.stdout, new RegExp(`^  ${command} `, 'm'));
  const config = await run(['serve', '--print-config'], { port: 1234 });
  t.is(JSON.parse(config.stdout).port, 1234);
  t.deepEqual(await run(['demo']), {
    stdout: '',
    stderr: 'The demo is not part of the production image: run it in a clone of the project.\n',
    code: 1,
  });
});

test('check and migrate work in the image', async (t) => {
  const settings = connections(t.context.database);
  const checked = await run(['check'], settings);
  t.regex(checked.stdout, /No item failed; warnings: 1\.\n$/);
  t.is(checked.code, 0);
  const listed = await run(['migrate', '--list'], settings);
  t.regex(listed.stdout, /^applied core\/001_roles\.sql$/m);
  t.false(listed.stdout.includes('pending'));
});
