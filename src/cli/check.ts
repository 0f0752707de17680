import { parseArgs } from 'node:util';
import { warning } from '../check/finding.js';
import { inspect } from '../check/inspect.js';
import { loadResources } from '../definition/load.js';
import { misspeltNames } from '../misspelt-names.js';
import { loadSettings } from '../settings.js';
import { type Command, print, printText, program } from './command.js';

const help = `Usage: ${program} check [--json]

Connects to every replica (REPLICA_URLS) and to the primary (PRIMARY_URL, if set) as the gateway does and checks
roles and their privileges, views with their columns, owners and workspace filter, functions, session settings, time
zone, clock, and that DATA_KEYS holds every key in use. Changes nothing.

Prints one line per item. \`serve\` refuses to start while an item is REFUSED; it starts while an item is a FAIL, such as
a replica that is away now.

Exit codes: 0 every item is ok, 1 an item is not ok, 2 wrong usage or settings.

Options:
  --json  Print the findings as JSON
  --help  This text`;

/** `check`: tells whether the databases fit the gateway. */
export const check: Command = {
  help,
  async run(args) {
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
  },
};
