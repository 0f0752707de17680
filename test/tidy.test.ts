import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import test from 'ava';
import { projectRoot } from '../src/base/paths.js';
import { importsOf, type Source, sourcesIn } from './support/sources.js';
import { words } from './support/words.js';

const src = sourcesIn('src', '.ts');
const hasBench = existsSync(join(projectRoot, 'bench'));
const tools = ['demo', 'pull', 'client'].flatMap((folder) => sourcesIn(folder, '.ts'));
const tests = [...sourcesIn('test', '.ts'), ...(hasBench ? sourcesIn('bench', '.ts') : [])];
const all = [...src, ...tools, ...tests];
const sql = sourcesIn('sql', '.sql');
const imports = src.flatMap(importsOf);

/** The layers stand from the bottom up: a file imports from its own layer and from those before it, and nothing else. */
const layers = words(`
  base/paths.ts base/cache-bound.ts base/nearest-name.ts base/members.ts base/errors.ts base/events.ts base/tracing.ts base/tuning.ts base/wall-key.ts base/words.ts
  base/flow postgres/database-errors.ts postgres/row.ts postgres/statement.ts postgres/wal-position.ts postgres/wire postgres
  resource/projection resource/definition resource/serializer resource/statements resource settings.ts
  serve/read-register.ts serve/reply.ts serve/entity-tags.ts serve/upkeep.ts serve/write serve/read serve/sync serve/peers doctor serve/openapi serve/http serve/ops serve/app.ts
  serve/gateway.ts serve/workers operate/export operate/migrate operate/adopt/schema.ts operate/adopt/names.ts operate/adopt/sql.ts
  operate/adopt/columns operate/adopt/tables operate/adopt/hiding operate/adopt/definition operate/adopt cli main.ts`);

/** A fence within the layers says which importers a folder allows. */
const fences: Readonly<Record<string, (importer: string) => boolean>> = {
  'serve/ops': (importer) => importer === 'serve/gateway.ts' || importer.startsWith('serve/workers/'),
};

test('imports point downwards only', (t) => {
  const layerOf = (file: string): string | undefined =>
    layers.includes(file) ? file : layers.find((layer) => file.startsWith(`${layer}/`));
  const wrong: string[] = [];
  for (const { from, to } of imports) {
    if (/^config\/(settings\.schema|adopt\/words|check\/advice)\.json$/.test(to)) continue; // for its types: a JSON file imports nothing
    if (!to.startsWith('src/')) {
      wrong.push(`${from} imports ${to}, which is not part of the product`);
      continue;
    }
    const [importer, imported] = [from.slice('src/'.length), to.slice('src/'.length)];
    const [above, below] = [layerOf(importer), layerOf(imported)];
    if (above === undefined) wrong.push(`${from} is in no layer: give it one here`);
    else if (below === undefined) wrong.push(`${to} is in no layer: give it one here`);
    else if (above === below) continue;
    else if (layers.indexOf(below) > layers.indexOf(above)) wrong.push(`${from} imports ${to}, which stands above it`);
    else if (fences[below]?.(importer) === false) wrong.push(`${from} must not import ${to}`);
  }
  t.deepEqual(wrong, []);
});

/** Code that a start must not wait for: it is loaded by the first request, setting or command that needs it. */
const loadedLater =
  /^src\/(?:operate|doctor\/thorough)\/|^src\/serve\/peers\/redis\.ts$|^(koa-body|ioredis|@opentelemetry\/(?!api$).*)$/;

test('serve loads no code that only some requests, settings or other commands need', (t) => {
  const loaded = new Set(['src/cli/serve.ts', 'src/serve/gateway.ts']);
  for (const path of loaded) {
    const { code = '' } = src.find((source) => source.path === path) ?? {};
    for (const [, target = ''] of code.matchAll(/^(?:import|export) (?!type)(?:[^'"]*? from )?'([^']+)'/gm))
      loaded.add(target.startsWith('.') ? posix.join(dirname(path), target).replace(/\.js$/, '.ts') : target);
  }
  t.true(loaded.has('src/serve/http/routes.ts') && loaded.has('koa'));
  const early = [...loaded].filter((path) => loadedLater.test(path));
  t.deepEqual(early, []);
});

/** A function opens with its indent, which its end has as well. The linter counts fewer lines than there are. */
const longFunction =
  /^( *)(?! |\} |if |else |for |while |switch |try |do ).*(?:\)(?:: [^=\n]+)?|=>) \{\n(?:(?!\1\}).*\n){61}/m;

test('no file is longer than 600 lines, and no function of the program than 60', (t) => {
  const isLong = ({ path, text }: Source): boolean =>
    text.split('\n').length > 601 || (path.startsWith('src/') && longFunction.test(text));
  const long = [...all, ...sql].filter(isLong).map(({ path }) => path);
  t.deepEqual(long, []);
});

test('no two files of src have one name; the main file of a folder has the name of the folder', (t) => {
  const names = src.flatMap(({ path }) => (/(\w+)\/\1\.ts$/.test(path) ? [] : posix.basename(path)));
  t.deepEqual(
    names.filter((name, i) => names.indexOf(name) !== i),
    [],
  );
});

test('folders and files are named after their content', (t) => {
  const vague = /(^|\/)(utils?|helpers?|services?|controllers?|managers?|common|misc|lib)(\/|\.ts$)|(^|\/)index\.ts$/i;
  const unclear = all.map(({ path }) => path).filter((path) => vague.test(path));
  t.deepEqual(unclear, []);
});

/** Patterns that code must not have, and the files where they are allowed. */
const forbidden: readonly { readonly what: string; readonly pattern: RegExp; readonly allowed?: RegExp }[] = [
  { what: 'any', pattern: /(?:[:<|&,(]|\bas)\s*any\b(?=\s*[[\]>,;)|&=]|$)/m },
  {
    what: 'suppressed type error',
    pattern: new RegExp(`@ts-(?:${['ignore', 'nocheck', 'expect-error'].join('|')})`),
  },
  // The samples of the documentation page are programs of their readers.
  { what: 'console', pattern: /\bconsole\.\w+\(/, allowed: /^(test|bench)\// },
  // Output that bypasses these functions could hold control characters.
  {
    what: 'output',
    pattern: /\bprocess\.std(?:out|err)\.write\b/,
    allowed: /^(test|bench)\/|^src\/cli\/command\.ts$|^pull\/src\/(main|display|mcp\/main)\.ts$/,
  },
  // Settings come from the command that was called; the embedded servers take PG_BIN and PATH, which are no settings.
  { what: 'process.env', pattern: /process\.env\b/, allowed: /^(test|bench)\/|^demo\/|^src\/cli\// },
  // The table of SQLSTATEs says what helps; commands of the administrator know some of their own.
  {
    what: 'SQLSTATE',
    pattern: /['"`/|^(](?:0[0-9A-Z]|2[0-9A-Z]|3[DF]|4[0-9A-Z]|5[3-8]|XX|WG)[0-9A-Z]{3}['"`/|$]/,
    allowed: /^(?!src\/)|^src\/(operate|cli)\/|^src\/postgres\/database-errors\.ts$/,
  },
  {
    what: "use of pg's private parts",
    pattern:
      /\b(?:parsedStatements|submittedNamedStatements|handleDataRow|extends pg\.(?:Query|Connection)|as unknown as \{ connection)\b/,
    allowed: /^test\/|^src\/postgres\/wire\//,
  },
  {
    what: 'SQL',
    pattern:
      /[`'"](?:select (?!the )|insert into |update \w+\.|delete from |with \w+ as \(|begin\b(?=[ '"])|alter (?:table|role|index) |drop (?:table|index|database) )/i,
    allowed:
      /^test\/|^bench\/|^demo\/|^src\/(postgres|operate|doctor)\/|^pull\/src\/(sql|mcp)\/|^src\/resource\/statements\/(sync-|write-)?statements\.ts$|^src\/serve\/(http\/token-look-up|sync\/token-seal|upkeep)\.ts$|^src\/cli\/(tokens|register)\.ts$/,
  },
];

for (const { what, pattern, allowed } of forbidden) {
  test(`there is no ${what} where it does not belong`, (t) => {
    const searched = ({ text, code }: Source): string => (what === 'suppressed type error' ? text : code);
    const found = all.filter((source) => !allowed?.test(source.path) && pattern.test(searched(source)));
    const paths = found.map(({ path }) => path).filter((path) => path !== 'test/tidy.test.ts');
    t.deepEqual(paths, []);
  });
}

test('no work is left for later', (t) => {
  const later = new RegExp(`\\b(${['TO' + 'DO', 'FIX' + 'ME', 'X' + 'XX', 'HA' + 'CK'].join('|')})\\b`);
  const texts = [...all, ...sql, ...sourcesIn('docs', '.md'), ...sourcesIn('config', '.json')];
  const paths = texts.filter(({ text }) => later.test(text)).map(({ path }) => path);
  t.deepEqual(paths, []);
});

/** Words for which the project has better ones: name the actor, and write "must not" for a prohibition. */
const vagueWords = [
  /\b(?:whoever|nobody|somebody|anybody|someone|anyone|no one)\b/i,
  /\b(?:in vain|out of the blue|anew|may not|may neither)\b/i,
  /^ *(?:\/\*\*|\*|\/\/|--) (?:What|Who|Whose|Whoever) /m,
];
/** A noun again says more than a pronoun; in the program and its SQL. */
const emptyPronouns = /\b(?:that|those) of\b/;
/** A comment stands alone: it begins with a verb or with a noun, not with a pronoun. */
const fragments =
  /\/\*\*\s(?:\s*\* )?(?:It|They|Then|So (?:many|long)|Its|Their|Of|By(?! then)|Whether|How|As|Those|Such as)\b/;
const ofProgram = /^(?:src|pull\/src|client\/src|sql)\//;
/** Syntax of another language, and words that say more than is true, in texts for readers: help, errors, advice, descriptions, pages. */
const mendedWords =
  /\b(?:that of|those of|of (?:its|their) own|by itself|of now|but for|for good|stands? still|(?:is|are) away|prove[ds]|as often|within seconds|goes back in time|things are wrong|can be produced|says (?:yes|no)|[Ll]et (?:the|a|an|each|your|NTP))\b/;
const forReaders =
  /^(?:README|SECURITY|CHANGELOG|CONTRIBUTING)\.md$|^docs\/(?:use|understand|contribute|start)\/|^config\/(?:help|openapi|check)\/|^config\/settings\.schema\.json$|^src\/(?:base\/errors|postgres\/database-errors|serve\/ops\/status)\.ts$/;

/** The exception names the Unix user `nobody`. Add none. */
const withVagueWords: ReadonlySet<string> = new Set(['demo/cluster/binaries.ts']);

test('comments, messages and docs are sentences, name the actor and avoid vague words', (t) => {
  const pages = ['README.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md'].map((path) => ({
    path,
    text: readFileSync(join(projectRoot, path), 'utf8'),
  }));
  const texts = [
    ...all,
    ...sql,
    ...['docs', 'config', 'test'].flatMap((folder) =>
      ['.md', '.json', '.txt'].flatMap((extension) => sourcesIn(folder, extension)),
    ),
    ...pages,
  ];
  const found = texts
    .filter(({ path }) => path !== 'test/tidy.test.ts' && !withVagueWords.has(path))
    .flatMap(({ path, text }) =>
      [
        ...vagueWords,
        ...(forReaders.test(path) ? [mendedWords] : []),
        ...(ofProgram.test(path) ? [emptyPronouns, fragments] : []),
      ]
        .flatMap((words) => words.exec(text)?.[0] ?? [])
        .map((word) => `${path}: ${word}`),
    );
  t.deepEqual(found, []);
});

test('a name that lives longer than three lines says what it is', (t) => {
  const meaningless = /^(\s*)(?:const|let) (each|of|found|given|own|more|rest|told|judged|some|other|place)\b/;
  const wrong = src.flatMap(({ path, text }) => {
    const lines = text.split('\n');
    return lines.flatMap((line, i) => {
      const [, indent = '', name] = meaningless.exec(line) ?? [];
      if (name === undefined) return [];
      const end = lines.findIndex((later, at) => at > i && later !== '' && !later.startsWith(indent));
      const scope = lines.slice(i + 4, end < 0 ? undefined : end);
      const isUsed = scope.some((later) => new RegExp(`(?<![.\\w'])${name}\\b(?!['\\w]|:)`).test(later));
      return isUsed ? [`${path}:${i + 1} ${name}`] : [];
    });
  });
  t.deepEqual(wrong, []);
});

const namesIn = (files: readonly Source[], pattern: RegExp): string[] =>
  files.flatMap(({ code }) => [...code.matchAll(pattern)].map(([, name = '']) => name));

test('the name of a type has one meaning in src, and the name of a function or method begins with a verb', (t) => {
  const types = namesIn(src, /^(?:export )?(?:declare )?(?:abstract )?(?:interface|type|class) (\w+)/gm);
  const written = all.filter(({ path }) => /^(?:pull\/)?src\//.test(path)); // the client's names are its API
  const functions = namesIn(
    written,
    /^(?:export )?(?:async )?(?:function\*? |const (?=\w+[^=]*= (?:async )?\((?:\n(?: {2}.*\n)*\))?.*=>))(\w+)/gm,
  );
  const methods = namesIn(
    written,
    /^ {2}(?:static )?(?:async )?\*?#?(?!constructor|super|if|for|while|switch)(\w+)(?:<.*>)?\((?:.*[{(])?$/gm,
  );
  const verbs = words(readFileSync(join(projectRoot, 'test/support/verbs.txt'), 'utf8'));
  const repeated = types.filter((name, i) => types.indexOf(name) !== i);
  const withoutVerb = [...functions, ...methods].filter((name) => !verbs.includes(name.replace(/[^a-z].*/, '')));
  t.deepEqual({ repeated, withoutVerb }, { repeated: [], withoutVerb: [] });
});

test('no line of a comment is longer than 140 characters', (t) => {
  const long = [...all, ...sql].flatMap(({ path, text }) =>
    text
      .split('\n')
      .flatMap((line, i) => (line.length > 140 && /^\s*(?:\/[/*]|\*|--) /.test(line) ? [`${path}:${i + 1}`] : [])),
  );
  t.deepEqual(long, []);
});

/** Names of commands, resources, parameters, settings, JSON and libraries. */
const foreignNames = words(`check serve plans klanten werkbonnen nummer createdAt updatedSince primaryReadsPerSecond
  constructor skip next msg time traceparent Response head max pause pid gateway_ _total`);

test('a name that a comment of src quotes is one of its file, exported, or the code of an error', (t) => {
  const exported = namesIn(src, /^export (?:abstract |async )?(?:function\*?|const|class|interface|type) (\w+)/gm);
  const known = new Set([...foreignNames, ...exported, ...namesIn(src, /^ {2}(\w+): \{ status: \d/gm)]);
  const unknown = src.flatMap(({ path, text, code }) => {
    const names = new Set(code.match(/\w+/g));
    const isExample = (name: string) => path.startsWith('src/operate/adopt/') && /^[a-z_]+$/.test(name); // of a table
    return [...text.matchAll(/(?<=(?:^ *(?:\/\*\*|\*)|\/\/) .*)`#?(?:\w+\.)*(\w+)(?:\(\))?`/gm)]
      .filter(([, name = '']) => !known.has(name) && !names.has(name) && !isExample(name))
      .map(([quoted]) => `${path}: ${quoted}`);
  });
  t.deepEqual(unknown, []);
});

test('files that a rule leaves out exist', (t) => {
  const paths = [...all, ...sql].map(({ path }) => path);
  const gone = [
    ...[...withVagueWords].filter((path) => !paths.includes(path)),
    ...forbidden.filter(({ allowed }) => allowed && !paths.some((path) => allowed.test(path))).map(({ what }) => what),
  ];
  t.deepEqual(gone, []);
});

test('every SQL file begins with a comment that gives its reasons', (t) => {
  const bare = sql.filter(({ text }) => !/^-- \S/.test(text)).map(({ path }) => path);
  t.deepEqual(bare, []);
});

test('the lock file names no download address', (t) => {
  const lock = JSON.parse(readFileSync(join(projectRoot, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { resolved?: string }>;
  };
  t.false(Object.values(lock.packages).some(({ resolved }) => resolved?.includes('://')));
});

test('the changelog has an entry for this version', (t) => {
  const { version } = JSON.parse(readFileSync(join(projectRoot, 'package.json'), 'utf8')) as { version: string };
  t.regex(
    readFileSync(join(projectRoot, 'CHANGELOG.md'), 'utf8'),
    new RegExp(`^## \\[${version.replaceAll('.', '\\.')}\\] - \\d{4}-\\d{2}-\\d{2}$`, 'm'),
  );
});

test('the layers, and the test files that .ci/run names, exist', (t) => {
  const script = readFileSync(join(projectRoot, '.ci/run'), 'utf8');
  const named = [...script.matchAll(/'dist\/(test\/\w+)\/@\((.+)\)\.test\.js'/g)].flatMap(([, folder, names = '']) =>
    names.split('|').map((name) => `${folder}/${name}.test.ts`),
  );
  const files = [...named, ...layers.map((layer) => `src/${layer}`)];
  t.deepEqual([named.length > 0, ...files.filter((file) => !existsSync(join(projectRoot, file)))], [true]);
});
