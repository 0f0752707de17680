import { parseArgs } from 'node:util';
import { warning } from '../check/finding.js';
import { inspect } from '../check/inspect.js';
import { loadResources } from '../definition/load.js';
import { misspeltNames } from '../misspelt-names.js';
import { loadSettings } from '../settings.js';
import { type Command, print, printText } from './command.js';

/** `check`: tells whether the databases fit the gateway. */
export const check: Command = async (args) => {
  const { values } = parseArgs({ args: [...args], options: { json: { type: 'boolean', default: false } } });
  const settings = loadSettings(process.env);
  const findings = [
    ...misspeltNames(process.env).map((sentence) => ({ server: 'settings', ...warning('environment', sentence) })),
    ...(await inspect(settings, loadResources(settings.resourcesDir))),
  ];
  const failures = findings.filter(({ ok }) => !ok);
  if (values.json) printText(JSON.stringify(findings, null, 2));
  else {
    let server = '';
    for (const finding of findings) {
      if (finding.server !== server) print(finding.server);
      server = finding.server;
      const mark = finding.ok ? 'ok     ' : finding.refuse ? 'REFUSED' : 'FAIL   ';
      print(`  ${mark}  ${finding.subject}: ${finding.detail}`);
    }
    print(failures.length === 0 ? 'All is well.' : `${failures.length} of ${findings.length} are not ok.`);
  }
  return failures.length === 0 ? 0 : 1;
};
