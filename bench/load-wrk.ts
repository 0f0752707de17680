import type { Load } from './load.js';
import { lua, runWrk } from './wrk.js';

/** Process of the load generator where there is wrk: the program and the load as arguments, the result as JSON on stdout. */
const [, , wrk = 'wrk', task = ''] = process.argv;
const load = JSON.parse(task) as Load;

/** Requests are made once; each connection's next request is the next of all. */
const script = `
local requests = {}
local at = 0
init = function(args)
${Object.entries(load.headers)
  .map(([name, value]) => `  wrk.headers[${lua(name)}] = ${lua(value)}`)
  .join('\n')}
  for i, path in ipairs({ ${load.paths.map(lua).join(', ')} }) do requests[i] = wrk.format('GET', path) end
end
request = function()
  at = at % #requests + 1
  return requests[at]
end
`;
process.stdout.write(JSON.stringify(runWrk(wrk, load, 1, script)));
