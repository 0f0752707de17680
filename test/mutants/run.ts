import { spawn, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { projectRoot } from '../../src/base/paths.js';
import { killGroup } from '../support/serve-process.js';
import { namedBy } from './named-by.js';
import { pureNames, pureVerdict } from './pure.js';

// `npm run mutants [-- --only PART]` takes out one defence at a time, in a copy, and runs its test, which must fail; then Stryker changes
// the pure modules. Ends with 1 when something survives or does not match. --compile only compiles, in rounds of one mutant per file.

/** One defence to take out; `find` stands exactly once in `file`. */
interface Mutant {
  readonly name: string;
  readonly file: string;
  readonly find: string;
  readonly replace: string;
  readonly test: string;
}

interface Verdict {
  readonly name: string;
  readonly ok: boolean;
  readonly what: string;
  readonly seconds: number;
}

const timeLimitMs = 300_000;
/** Declarations that only the defence used can be unused. */
const leftovers = ['--noUnusedLocals', 'false', '--noUnusedParameters', 'false'];
const all = JSON.parse(readFileSync(join(projectRoot, 'test/mutants.json'), 'utf8')) as Mutant[];
const optionTypes = { only: { type: 'string' }, compile: { type: 'boolean' }, help: { type: 'boolean' } } as const;
const { values: options } = parseArgs({ options: optionTypes });
if (options.help) {
  console.log('Usage: npm run mutants -- [--only PART OF A NAME | test/FOLDER] [--compile]');
  process.exit(0);
}
const known = [...all.map(({ name }) => name), ...pureNames];
const ofTests = all.filter(({ test }) => options.only !== undefined && test.startsWith(options.only));
const names =
  ofTests.length > 0
    ? ofTests.map(({ name }) => name)
    : options.only === undefined
      ? known
      : namedBy(options.only, known);
const mutants = all.filter(({ name }) => names.includes(name));
const folder = copyOfProject();
const verdicts: Verdict[] = [];
try {
  const fault = compile();
  if (fault !== null) throw new Error(`The project does not compile:\n${fault}`);
  for (const round of options.compile ? rounds(mutants) : []) compileRound(round);
  for (const test of new Set(options.compile ? [] : mutants.map((mutant) => mutant.test)))
    report(await timed(`${test} as it is`, () => greenAsItIs(test)));
  const green = verdicts.every(({ ok }) => ok);
  for (const mutant of green && !options.compile ? mutants : [])
    report(await timed(mutant.name, () => redWithout(mutant)));
} finally {
  rmSync(folder, { recursive: true, force: true });
}
for (const name of options.compile ? [] : pureNames.filter((each) => names.includes(each)))
  report(await timed(name, () => pureVerdict(name)));
const failed = verdicts.filter(({ ok }) => !ok);
console.log(
  failed.length === 0
    ? `${names.length} mutants and groups of mutants, ${options.compile ? 'all compile' : 'none survives'}`
    : `${failed.length} of ${verdicts.length} are not as expected`,
);
process.exitCode = failed.length === 0 ? 0 : 1;

/** Copies the files that git knows or would add; node_modules is shared. */
function copyOfProject(): string {
  const copy = mkdtempSync(join(tmpdir(), 'mutants-'));
  const listed = spawnSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    cwd: projectRoot,
    encoding: 'utf8',
  });
  for (const path of listed.stdout.split('\0').filter((each) => each !== '' && existsSync(join(projectRoot, each))))
    cpSync(join(projectRoot, path), join(copy, path));
  symlinkSync(join(projectRoot, 'node_modules'), join(copy, 'node_modules'));
  return copy;
}

/** Builds the copy as `npm run build` does. The compiler's errors; null when there are none. */
function compile(): string | null {
  const node = (...args: string[]) => spawnSync(process.execPath, args, { cwd: folder, encoding: 'utf8' });
  const { status, stdout } = node(join('node_modules', 'typescript', 'bin', 'tsc'), '-p', '.', ...leftovers);
  if (status !== 0) return stdout;
  const validators = node(join('dist', 'bundle', 'validators.js'));
  return validators.status === 0 ? null : validators.stderr;
}

function rounds(of: readonly Mutant[]): Mutant[][] {
  const found: Mutant[][] = [];
  for (const mutant of of) {
    const round = found.find((each) => each.every(({ file }) => file !== mutant.file));
    if (round) round.push(mutant);
    else found.push([mutant]);
  }
  return found;
}

function compileRound(round: readonly Mutant[]): void {
  const sources = round.map(({ file }) => readFileSync(join(folder, file), 'utf8'));
  for (const [i, { file, find, replace }] of round.entries())
    writeFileSync(
      join(folder, file),
      (sources[i] as string).replace(find, () => replace),
    );
  const faults = compile();
  const stale = round.filter(({ file }) => faults?.split('\n').some((line) => line.startsWith(`${file}(`)));
  for (const [i, { file }] of round.entries()) writeFileSync(join(folder, file), sources[i] as string);
  if (faults === null) return;
  for (const { name } of stale.length > 0 ? stale : round)
    report({ name, ok: false, what: `does not compile: ${faults.split('\n')[0]}`, seconds: 0 });
}

async function greenAsItIs(test: string): Promise<{ ok: boolean; what: string }> {
  const { red, what } = await run(test);
  return { ok: !red && what === 'passed', what };
}

async function redWithout({ file, find, replace, test }: Mutant): Promise<{ ok: boolean; what: string }> {
  const path = join(folder, file);
  if (!existsSync(path)) return { ok: false, what: `there is no ${file}` };
  const source = readFileSync(path, 'utf8');
  const times = source.split(find).length - 1;
  if (times !== 1) return { ok: false, what: `its text stands ${times} times in ${file}` };
  writeFileSync(
    path,
    source.replace(find, () => replace),
  );
  try {
    const fault = compile();
    if (fault !== null) return { ok: false, what: `does not compile: ${fault.split('\n')[0]}` };
    const { red, what } = await run(test, '--fail-fast');
    return { ok: red, what: red ? what : `SURVIVES: ${what}` };
  } finally {
    writeFileSync(path, source); // which the next mutant's compilation finds
  }
}

/** Runs a test file of the copy: those that need the shared database through `npm test`, the others by AVA alone. */
async function run(test: string, ...flags: string[]): Promise<{ red: boolean; what: string }> {
  const compiled = test.replace(/\.ts$/, '.js').replace(/^/, 'dist/');
  if (!existsSync(join(folder, compiled))) return { red: false, what: `there is no ${test}` };
  const isShared = reaches(test, 'test/support/workspace.ts');
  const program = isShared ? 'dist/test/support/run.js' : 'node_modules/ava/entrypoints/cli.mjs';
  // A group of its own, because a worker of AVA that a mutant keeps in a loop notices nothing, and would burn a core under all later runs.
  const child = spawn(process.execPath, [program, compiled, ...flags], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  const kill = (): void => killGroup(child.pid as number);
  const interrupted = (): void => {
    kill();
    process.exit(130);
  };
  process.once('SIGINT', interrupted);
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    kill();
  }, timeLimitMs);
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve));
  clearTimeout(timer);
  process.off('SIGINT', interrupted);
  // `serve` has a group of its own, and that of a mutant can outlive its test.
  spawnSync('pkill', ['-KILL', '-f', `${folder}/dist/src/main.js`]);
  if (isLate) return { red: true, what: `did not end within ${timeLimitMs / 1000} s` };
  if (code === 0) return { red: false, what: 'passed' };
  const title =
    /✘ \[fail\]: (.*)/.exec(output)?.[1] ??
    /(?:Timed out|Uncaught exception|Unhandled rejection|failed to).*/i.exec(output)?.[0];
  if (title === undefined)
    return { red: false, what: `could not be run: ${output.trim().split('\n').slice(-3).join(' ')}` };
  return { red: true, what: `fails: ${title.trim()}` };
}

function reaches(path: string, target: string, seen = new Set<string>()): boolean {
  if (path === target) return true;
  if (seen.has(path) || !existsSync(join(folder, path))) return false;
  seen.add(path);
  const imports = readFileSync(join(folder, path), 'utf8').matchAll(
    /^(?:import|export) (?!type )[^;]*?from '(\.[^']+)\.js';/gm,
  );
  return [...imports].some(([, name]) => reaches(join(dirname(path), `${name}.ts`), target, seen));
}

async function timed(name: string, work: () => Promise<{ ok: boolean; what: string }>): Promise<Verdict> {
  const startedMs = performance.now();
  const { ok, what } = await work();
  return { name, ok, what, seconds: (performance.now() - startedMs) / 1000 };
}

function report(verdict: Verdict): void {
  verdicts.push(verdict);
  const { name, ok, what, seconds } = verdict;
  console.log(
    `| ${ok ? 'ok' : 'NOT'} | ${name} | ${what.slice(0, 160).replaceAll('|', '/')} | ${seconds.toFixed(1)} s |`,
  );
}
