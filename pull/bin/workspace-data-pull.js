#!/usr/bin/env -S UV_THREADPOOL_SIZE=1 MALLOC_ARENA_MAX=1 node --max-semi-space-size=2 --optimize-for-size
// Each thread keeps memory of its own.
import { existsSync } from 'node:fs';

const program = new URL('../dist/main.js', import.meta.url);
if (existsSync(program)) await import(program.href);
else {
  process.stderr.write('workspace-data-pull is not built in this clone yet: run `npm run build`.\n');
  process.exitCode = 1;
}
