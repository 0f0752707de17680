#!/usr/bin/env node
import { existsSync } from 'node:fs';

const program = new URL('../dist/mcp/main.js', import.meta.url);
if (existsSync(program)) await import(program.href);
else {
  process.stderr.write('workspace-data-mcp is not built in this clone yet: run `npm run build`.\n');
  process.exitCode = 1;
}
