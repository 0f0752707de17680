import { urlAs } from '../../demo/cluster/passwords.js';
import { freePort } from '../../demo/cluster/ports.js';
import { projectRoot, readProject } from '../../src/base/paths.js';
import { runAsAdmin } from '../../src/postgres/admin.js';
import { output, type ProgramOptions, programMissing, workFolder } from '../support/client-tools.js';
import { connections } from '../support/command-line.js';
import { environmentOf } from '../support/environment.js';
import { allScopes, gatewayTest, shared } from '../support/workspace.js';

// The pages of the protocol are sessions in a shell: each block of commands, and after it the answer that readers see.

const test = gatewayTest({ rateLimitPerMinute: 60 });
const pages = [
  ...['api', 'lists', 'sync', 'writes', 'errors', 'reference-app', 'metrics-and-events'].map(
    (page) => `reference/${page}`,
  ),
  'operate/monitoring',
  'operate/export',
  'start/demo',
  'use/write-safely',
];
const mark = '=== next ===';

/** Masks what differs between two runs: ids, numbers, moments, versions. */
const varying = (text: string): string =>
  text.replace(/[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}/g, '<id>').replace(/\d+/g, '0');

/** The text is as the page shows it; `…` stands for any text. */
function isLike(shown: string, found: string): boolean {
  const parts = varying(shown)
    .split('…')
    .map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${parts.join('[^]*')}$`).test(varying(found));
}

/** Parses JSON in which a bare `…` stands for more entries or fields: these become one of that name. */
function parsed(shown: string): unknown {
  const open: string[] = [];
  const json = shown.replace(/"(?:[^"\\]|\\.)*"|[{}[\]…]/g, (token) => {
    if (/[{[]/.test(token) && token.length === 1) open.push(token);
    if (/[}\]]/.test(token) && token.length === 1) open.pop();
    return token === '…' ? (open.at(-1) === '[' ? '"…"' : '"…":"…"') : token;
  });
  return JSON.parse(json);
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * Says where a value differs from the one shown, or null. Fields come in the same order with the same types; errors, and texts that the
 * commands contain, are equal.
 */
function difference(shown: unknown, found: unknown, mustEqual: (text: string) => boolean, place = ''): string | null {
  const inside = (pairs: readonly (readonly [string | number, unknown, unknown])[]): string | null =>
    pairs
      .map(([name, one, other]) => difference(one, other, mustEqual, `${place}/${name}`))
      .find((each) => each !== null) ?? null;
  if (Array.isArray(shown) && Array.isArray(found)) {
    const entries = shown.filter((entry) => entry !== '…');
    const isLong = entries.length === shown.length ? found.length !== entries.length : found.length < entries.length;
    return isLong ? `${place} has ${found.length} entries` : inside(entries.map((entry, i) => [i, entry, found[i]]));
  }
  if (isObject(shown) && isObject(found)) {
    const names = Object.keys(shown).filter((name) => name !== '…');
    const these = Object.keys(found).filter((name) => !('…' in shown) || names.includes(name));
    return these.join() === names.join()
      ? inside(names.map((name) => [name, shown[name], found[name]]))
      : `${place} has ${these.join()}`;
  }
  const isSame =
    typeof shown === 'string' && typeof found === 'string'
      ? !mustEqual(shown) || isLike(shown, found)
      : typeof shown === typeof found && ((shown !== null && typeof shown !== 'boolean') || shown === found);
  return isSame ? null : `${place} is ${JSON.stringify(found)}`;
}

/** Compares what the commands printed with the block of the page after them. */
function fault(language: string, shown: string, printed: string, commands: string): string | null {
  if (language === 'text') return isLike(shown.trim(), printed.trim()) ? null : `printed ${printed}`;
  const [head, body] = language === 'http' ? printed.split(/\r?\n\r?\n(.*)/s) : ['', printed];
  const [shownHead, shownBody = ''] = language === 'http' ? shown.split(/\n\n(.*)/s) : ['', shown];
  const headers = new Set((head as string).split(/\r?\n/).map((line) => line.toLowerCase()));
  const missing = (shownHead as string)
    .split('\n')
    .filter((line) => line !== '' && ![...headers].some((header) => isLike(line.toLowerCase(), header)));
  if (missing.length > 0) return `${missing.join('\n')} is not in\n${head}`;
  if (shownBody.trim() === '') return null;
  const found: unknown = JSON.parse(body as string);
  const isProblem = isObject(found) && 'requestId' in found;
  return difference(parsed(shownBody), found, (text) => isProblem || (/\w/.test(text) && commands.includes(text)));
}

const noJq = programMissing('jq', '--version');

/** Runs the commands of a page and returns each answer that is not the one shown after them. */
async function wrongAnswers(
  page: string,
  edit: (script: string) => string,
  options: ProgramOptions,
): Promise<string[]> {
  const text = readProject(`docs/${page}.md`);
  const blocks = [...text.matchAll(/^```(\w+)\n(.*?)^```$/gms)].map(([, language = '', code = '']) => ({
    language,
    code,
  }));
  const steps = blocks.flatMap(({ language, code }, i) => (language === 'sh' ? [{ code, answer: blocks[i + 1] }] : []));
  const script = edit(steps.map(({ code }) => code).join(`\nprintf '\\n${mark}\\n'\n`));
  const printed = (await output('sh', ['-c', script], options)).split(`\n${mark}\n`);
  if (printed.length !== steps.length) return [`${printed.length} of ${steps.length} blocks were run`];
  return steps.flatMap(({ code, answer }, i) => {
    if (answer === undefined || answer.language === 'sh') return [];
    const found = fault(answer.language, answer.code, printed[i] as string, code);
    return found === null ? [] : [`${code}${found}`];
  });
}

for (const page of pages)
  (noJq ? test.serial.skip : test.serial)(`the requests of docs/${page}.md get the answers shown${noJq}`, async (t) => {
    const { database, gateway } = t.context;
    const env = {
      BASE: `${gateway.url}/api/v1`,
      OPS: gateway.opsUrl,
      TOKEN: await database.token(),
      ...(page.endsWith('export') && (environmentOf(connections(database)) as Record<string, string>)),
      LOG_TOKEN: await database.token({ scopes: allScopes.filter((scope) => scope === 'read:logboeken') }),
    };
    const withoutSettings = (script: string): string =>
      script
        .replaceAll(/^(BASE|OPS|\w*TOKEN|export .*)=.*$/gm, '')
        .replaceAll(/^gateway /gm, `node ${projectRoot}/dist/src/main.js `)
        .replace(/(?<=--workspace )\S+/, database.workspaces[0]?.id as string);
    const cwd = workFolder({ log: '' });
    t.deepEqual(await wrongAnswers(page, withoutSettings, { env, cwd }), []);
  });

const noPsql = noJq || programMissing('psql', '--version');
(noPsql ? test.serial.skip : test.serial)(
  `what docs/start/tutorial.md shows works as it stands, on servers that are there${noPsql}`,
  async (t) => {
    const [replica = ''] = shared.replicas;
    const ready = {
      primaryUrl: urlAs(shared.primary, 'postgres', 'workspace'),
      replicaUrls: [urlAs(replica, 'postgres', 'workspace')],
    };
    const folder = workFolder({ 'ready.json': JSON.stringify(ready) });
    const [port, opsPort] = [await freePort(), await freePort()];
    const onServers = (script: string): string =>
      `set -e; trap 'kill $SERVE' EXIT\n${script}`
        .replace(/^npm ci && npm run demo.*$/m, '')
        .replace('GATEWAY=$PWD', `GATEWAY=${projectRoot}`)
        .replace(/psql "\$PRIMARY"/, `psql '${urlAs(shared.primary, 'postgres', 'postgres')}'`)
        .replaceAll(
          /^gateway serve .*$/gm,
          (serve) => `test -z "$SERVE" || { kill $SERVE; wait $SERVE || true; }
          node "$GATEWAY/dist/src/main.js" ${serve.slice('gateway '.length)} >serve.log & SERVE=$!
          until curl -sf http://127.0.0.1:8081/api/v1 >serve.json; do kill -0 $SERVE; sleep 0.2; done`,
        )
        .replaceAll('8081', String(port))
        .replaceAll('9091', String(opsPort));
    try {
      t.deepEqual(await wrongAnswers('start/tutorial', onServers, { cwd: folder }), []);
    } finally {
      await runAsAdmin(urlAs(shared.primary, 'postgres', 'postgres'), async (client) => {
        await client.query('drop database if exists shop with (force)');
        await client.query('drop role if exists shop_reader, shop_writer');
      });
    }
  },
);
