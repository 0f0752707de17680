import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { projectRoot } from '../../src/paths.js';
import { environmentName } from '../../src/settings.js';
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

async function run(args: string[], env: NodeJS.ProcessEnv = {}): Promise<{ out: string; code: number }> {
  const main = join(image, 'dist/src/main.js');
  const running = promisify(execFile)(process.execPath, [main, ...args], { env: { PATH: process.env.PATH, ...env } });
  return running.then(
    ({ stdout }) => ({ out: stdout, code: 0 }),
    ({ stdout, stderr, code }) => ({ out: stdout + stderr, code }),
  );
}

test('the image has neither the demo nor the reference app', (t) => {
  for (const path of ['dist/src/demo', 'config/demo.json', 'sql/app', 'test', 'bench'])
    t.false(existsSync(join(image, path)), path);
});

test('help, settings and the hint at the demo work in the image', async (t) => {
  const help = await run(['--help']);
  t.is(help.code, 0, help.out);
  for (const command of ['serve', 'demo', 'check', 'migrate', 'tokens'])
    t.regex(help.out, new RegExp(`^  ${command} `, 'm'));
  const config = await run(['serve', '--print-config'], { PORT: '1234' });
  t.is(JSON.parse(config.out).port, 1234);
  t.deepEqual(await run(['demo']), {
    out: 'The demo is not part of the production image: run it in a clone of the project.\n',
    code: 1,
  });
});

test('check and migrate work in the image', async (t) => {
  const { replicaUrls, primaryUrl, dataKeys, adminUrl } = t.context.database.settings;
  const settings = Object.entries({ replicaUrls, primaryUrl, dataKeys, adminUrl });
  const env = Object.fromEntries(settings.map(([name, value]) => [environmentName(name), value]));
  const checked = await run(['check'], env);
  t.regex(checked.out, /All is well\.\n$/);
  t.is(checked.code, 0);
  const listed = await run(['migrate', '--list'], env);
  t.regex(listed.out, /^applied 001_roles$/m);
  t.false(listed.out.includes('pending'));
});
