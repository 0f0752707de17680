import { toolsInstalled, toolsMissing } from '../support/client-tools.js';
import { differences, generators } from '../support/generators.js';
import { gatewayTest } from '../support/workspace.js';

const test = gatewayTest();

for (const [name, generator] of Object.entries(generators))
  (toolsInstalled ? test.serial : test.serial.skip)(
    `a client that ${name} makes reads each list to its last page, the shielded log too, and writes, value for value${toolsMissing}`,
    async (t) => {
      const document = (await t.context.client.get('/openapi.json')).text;
      const env = { BASE: `${t.context.gateway.url}/api/v1`, TOKEN: t.context.token };
      t.deepEqual(await differences(generator, document, env), []);
    },
  );
