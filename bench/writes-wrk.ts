import type { WriteLoad } from './write-load.js';
import { lua, runWrk } from './wrk.js';

/** Process of the writers: wrk and the load as arguments, the result as JSON on stdout. */
const [, , wrk = 'wrk', task = ''] = process.argv;
const load = JSON.parse(task) as WriteLoad;
const { kind, target, customers } = load;
const { path, headers, members, makesIds } = target;
const bodies = customers.map((customer) =>
  JSON.stringify({ ...members, [target.customer]: customer, naam: 'Koelcel' }),
);

/** Each thread has one connection, so it knows the record and the version that the next request changes. */
const script = `
local threads = 0
setup = function(thread)
  thread:set('number', threads)
  threads = threads + 1
end
local headers = { ${Object.entries({ ...headers, 'content-type': 'application/json' })
  .map(([name, value]) => `[${lua(name)}] = ${lua(value)}`)
  .join(', ')} }
local bodies = { ${bodies.map(lua).join(', ')} }
local changes = 0
init = function(args)
  math.randomseed(${Math.floor(Math.random() * 2 ** 31)} + number)
end
local function uuid()
  local random = math.random
  return string.format('%08x-%04x-4%03x-8%03x-%06x%06x', random(0, 0xffffffff), random(0, 0xffff), random(0, 0xfff),
    random(0, 0xfff), random(0, 0xffffff), random(0, 0xffffff))
end
local create = function()
  local body = bodies[number % #bodies + 1]
  headers['idempotency-key'] = uuid()
  return wrk.format('POST', ${lua(path)}, headers, ${makesIds} and '{"id":"' .. uuid() .. '",' .. body:sub(2) or body)
end
request = create
local update = function()
  changes = changes + 1
  headers['idempotency-key'] = uuid()
  return wrk.format('PATCH', location, headers, '{"naam":"Koelcel ' .. changes .. '"}')
end
${
  kind === 'create'
    ? ''
    : `response = function(status, answered)
  for name, value in pairs(answered) do
    if name:lower() == 'etag' then headers['if-match'] = value end
    if name:lower() == 'location' then location = value:gsub('^https?://[^/]+', '') end
  end
  request = update
end`
}
`;
process.stdout.write(JSON.stringify(runWrk(wrk, load, load.connections, script)));
