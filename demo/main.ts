import type { Usage } from '../src/cli/explain.js';
import { asksForHelp, printHelp, runProgram } from '../src/cli/program.js';
import { demo } from './demo.js';

// `npm run demo`

const args = process.argv.slice(2);
const usage: Usage = { called: 'npm run demo --', help: 'demo/help.txt' };
void runProgram(async () => (asksForHelp(args) ? printHelp(usage) : demo(args)), usage);
