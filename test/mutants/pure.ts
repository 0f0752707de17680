import { join } from 'node:path';
import { Stryker } from '@stryker-mutator/core';
import { projectRoot } from '../../src/base/paths.js';

interface Pure {
  readonly modules: readonly string[];
  readonly test: string;
  readonly scoreMin: number;
}

const pure: Readonly<Record<string, Pure>> = {
  keyring: { modules: ['resource/projection/keyring'], test: 'projection.keyring', scoreMin: 90 },
  'strict-json': { modules: ['serve/write/strict-json'], test: 'http', scoreMin: 88 },
};

export const pureNames: readonly string[] = Object.keys(pure);

/**
 * Stryker changes the modules of a group in every way it knows and runs their unit test. It changes the compiled
 * JavaScript, because to read tsconfig.json it needs the compiler's interface, which TypeScript 7 does not have. Mutants
 * that are not found are printed; most of them mean the same as the code they replace.
 */
export async function pureVerdict(name: string): Promise<{ ok: boolean; what: string }> {
  const { modules, test, scoreMin } = pure[name] as Pure;
  const score = await scoreOf(modules, test);
  return { ok: score >= scoreMin, what: `${score.toFixed(1)} % of its mutants found, at least ${scoreMin} %` };
}

async function scoreOf(modules: readonly string[], test: string): Promise<number> {
  const ava = join(projectRoot, 'node_modules/ava/entrypoints/cli.mjs');
  const compiled = `dist/test/unit/${test}.test.js`;
  const results = await new Stryker({
    testRunner: 'command',
    commandRunner: { command: `"${process.execPath}" "${ava}" --fail-fast ${compiled}` },
    mutate: modules.map((module) => `dist/src/${module}.js`),
    ignorePatterns: ['bench', 'docs', '.demo'],
    tsconfigFile: 'none.json',
    checkers: [],
    reporters: ['clear-text'],
    clearTextReporter: { allowColor: false, logTests: false, reportTests: false, reportScoreTable: false },
    concurrency: 2,
    coverageAnalysis: 'off',
    disableTypeChecks: false,
    allowConsoleColors: false,
  }).runMutationTest();
  const found = results.filter(({ status }) => status === 'Killed' || status === 'Timeout').length;
  const counted = results.filter(({ status }) => status !== 'Ignored' && !status.endsWith('Error')).length;
  return (100 * found) / counted;
}
