import { parseArgs } from 'node:util';
import { inspect } from '../check/inspect.js';
import { loadResources } from '../definition/load.js';
import { loadSettings } from '../settings.js';
import { type Command, print, printText, program } from './command.js';

const help = `Usage: ${program} check [--json]

Connects to every replica (REPLICA_URLS) and to the primary (PRIMARY_URL, if set) as the gateway does and looks at
everything it relies on: roles and what they may do, views with their columns, owners and workspace filter, functions,
session settings, time zone, clock, and that DATA_KEYS holds every key in use. Changes nothing.

Prints one line per item; exit code 1 if any is not ok. \`serve\` refuses to start on those marked REFUSED; those marked
FAIL, such as a replica that is away now, do not keep it from starting.

Options:
  --json  Print the findings as JSON
  --help  This text`;

/** `check`: whether the databases are what the gateway needs. */
export const check: Command = {
  help,
  async run(args) {
    const { values } = parseArgs({ args: [...args], options: { json: { type: 'boolean', default: false } } });
    const settings = loadSettings(process.env);
    const findings = await inspect(settings, loadResources(settings.resourcesDir));
    const failures = findings.filter(({ ok }) => !ok);
    if (values.json) printText(JSON.stringify(findings, null, 2));
    else {
      let server = '';
      for (const finding of findings) {
        if (finding.server !== server) print(finding.server);
        server = finding.server;
        const mark = finding.ok ? 'ok     ' : finding.refuse ? 'REFUSED' : 'FAIL   ';
        print(`  ${mark}  ${finding.what}: ${finding.detail}`);
      }
      print(failures.length === 0 ? 'All is well.' : `${failures.length} of ${findings.length} are not ok.`);
    }
    return failures.length === 0 ? 0 : 1;
  },
};
