import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import { answer, openWriter } from '../database-writer.js';
import { gatewayHeaders } from './bare-headers.js';

// The least that can answer a write: node:http and pipelined pg clients that run the gateway's own statements. No token, no
// limit, nothing is checked; the headers and the body of the answer are constants.
// Settings: PORT, DATABASE_URL, WORKSPACE, TOKEN_ID; CUSTOMERS has a customer for each connection.
const { PORT, DATABASE_URL = '', WORKSPACE = '', TOKEN_ID = '', CUSTOMERS = '' } = process.env;
const target = { url: DATABASE_URL, tokenId: TOKEN_ID, hasIdempotency: true, hasAudit: true, hasPosition: true };
const customers = CUSTOMERS.split(' ');
const writers = await Promise.all(customers.map((customer) => openWriter(target, WORKSPACE, customer)));
const headers = [...gatewayHeaders(), 'Content-Length', String(answer.length)];
let turn = 0;

const server = createServer((request, response) => {
  if (request.method === 'GET') return void response.end(); // it is ready
  write(request).then(
    (id) =>
      response
        .writeHead(request.method === 'POST' ? 201 : 200, [
          ...headers,
          'Location',
          `http://127.0.0.1/installaties/${id}`,
        ])
        .end(answer),
    (error: Error) => response.writeHead(500).end(error.message),
  );
});
server.listen(Number(PORT), '127.0.0.1');

/** POST /installaties creates, PATCH /installaties/ID changes; returns the id. */
async function write(request: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece as Buffer);
  const { naam } = JSON.parse(Buffer.concat(pieces).toString()) as { naam: string };
  const isNew = request.method === 'POST';
  const id = isNew ? randomUUID() : ((request.url as string).split('/')[2] as string);
  turn = (turn + 1) % writers.length;
  await writers[turn]?.(id, naam, isNew);
  return id;
}
