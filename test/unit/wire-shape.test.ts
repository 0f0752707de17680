import test from 'ava';
import pg from 'pg';
import { assertWireShape } from '../../src/db/wire/wire.js';
import { StartRefused } from '../../src/errors.js';

test('the installed pg has every private member that the gateway relies on', (t) => {
  t.notThrows(() => assertWireShape());
});

test('a pg without one of them refuses the start and names its version and the member', (t) => {
  class Client extends pg.Client {
    constructor(config?: pg.ClientConfig) {
      super(config);
      Object.assign((this as unknown as { connection: object }).connection, { submittedNamedStatements: undefined });
    }
  }
  const refused = t.throws(() => assertWireShape({ Client, Query: pg.Query }), { instanceOf: StartRefused });
  t.regex(
    String(refused?.message),
    /^pg \d+\.\d+\.\d+ .* lacks client\.connection\.submittedNamedStatements \(object\)\.$/,
  );
});
