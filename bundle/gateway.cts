#!/usr/bin/env node
// The gateway in one file, as bundle.ts makes it: `node dist/bundle/gateway.cjs serve`. A start compiles program.js from V8's code cache
// beside it, instead of finding, reading and parsing some seven hundred modules.

import fs = require('node:fs');
import path = require('node:path');
import v8 = require('node:v8');
import vm = require('node:vm');

// Maglev, a compiler of V8, destroys its compilations on a background thread, and with Node 24 the process keeps 25 MB of them after a load;
// not so on the main thread. With Node 22 it makes no difference. Node 20 has neither Maglev nor the flag, and refuses it on the command line.
if (!process.version.startsWith('v20.')) v8.setFlagsFromString('--no-maglev-destroy-on-background');

/** The program, and V8's code cache of it behind the program's first line. */
const files = { program: path.join(__dirname, 'program.js'), cache: path.join(__dirname, 'program.cache') };

/** Compiles the program: from the code cache where it is that of this program, of this version of V8 and of its flags, else from the source. */
function compile(): vm.Script {
  const source = fs.readFileSync(files.program, 'latin1'); // ASCII: V8 keeps a byte per character
  const id = source.slice(0, source.indexOf('\n') + 1);
  return new vm.Script(source, {
    filename: files.program,
    cachedData: codeCache(id),
  });
}

/** V8 itself compares the length of the source only, so the cache begins with the program's first line, which has its hash. */
function codeCache(id: string): Buffer | undefined {
  try {
    const bytes = fs.readFileSync(files.cache);
    return bytes.toString('latin1', 0, id.length) === id ? bytes.subarray(id.length) : undefined;
  } catch {
    return undefined; // the program runs without it
  }
}

/** Node 20 lets no function that comes from a code cache import a module, so the program has this one for it. */
const importModule = (specifier: string): Promise<unknown> => import(specifier);

function run(script: vm.Script): void {
  script.runInThisContext()(require, files.program, importModule);
}

if (require.main === module) run(compile());
export = { files, compile, run };
