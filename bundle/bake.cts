// Runs the program like gateway.cts, and writes V8's code cache of all functions that were used until its parent asks for it.

import fs = require('node:fs');
import gateway = require('./gateway.cjs');

const script = gateway.compile();
gateway.run(script);
process.once('message', () => {
  const [id] = fs.readFileSync(gateway.files.program, 'latin1').split('\n', 1);
  fs.writeFileSync(gateway.files.cache, Buffer.concat([Buffer.from(`${id}\n`), script.createCachedData()]));
  process.exit(0);
});
