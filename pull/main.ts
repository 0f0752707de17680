import { asksForHelp, printHelp, runProgram, type Usage } from '../src/cli/program.js';
import { pullCommand } from './pull.js';

// `node dist/pull/main.js`

const args = process.argv.slice(2);
const usage: Usage = { called: 'node dist/pull/main.js', help: 'pull/help.txt' };
void runProgram(async () => (asksForHelp(args) ? printHelp(usage) : pullCommand(args)), usage);
