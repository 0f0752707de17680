// `node prism.mjs DOCUMENT UPSTREAM`: Prism in front of an API, which compares requests and responses with the document. Prints
// its address. A response has the violations as JSON in the header `sl-violations`. Ends with its standard input.

import prismCore from '@stoplight/prism-core';
import prismHttp from '@stoplight/prism-http';
import prismServer from '@stoplight/prism-http-server';

const [document, upstream] = process.argv.slice(2);
const operations = await prismHttp.getHttpOperationsFromSpec(document);
const server = prismServer.createServer(operations, {
  components: { logger: prismCore.createLogger('prism', { level: 'silent' }) },
  config: {
    checkSecurity: true,
    errors: false,
    isProxy: true,
    upstream: new URL(upstream),
    upstreamProxy: undefined,
    validateRequest: true,
    validateResponse: true,
    mock: { dynamic: false },
  },
  cors: false,
});
console.log(await server.listen(0, '127.0.0.1'));
process.stdin.on('end', () => process.exit()).resume();
