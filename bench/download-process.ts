import { connect } from 'node:net';
import type { Download, DownloadResult } from './download.js';

/** Process that reads one response off a bare socket and drops it, so that the client costs next to nothing. */
const { url, token, encoding = 'identity' } = JSON.parse(process.argv[2] as string) as Download;
const { hostname, port, pathname, search } = new URL(url);
const tailBytes = 64;
await read('/api/v1'); // a first connection costs this process 3 ms more, which are none of the gateway's
process.stdout.write(JSON.stringify(await read(pathname + search)));

async function read(target: string): Promise<DownloadResult> {
  let bytes = 0;
  let firstByteMs = 0;
  let head = '';
  let tail: Buffer = Buffer.alloc(0);
  const startedMs = performance.now();
  const socket = connect({ host: hostname, port: Number(port), noDelay: true });
  socket.write(
    `GET ${target} HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer ${token}\r\nAccept-Encoding: ${encoding}\r\nConnection: close\r\n\r\n`,
  );
  for await (const piece of socket as AsyncIterable<Buffer>) {
    if (bytes === 0) {
      firstByteMs = performance.now() - startedMs;
      head = piece.toString('latin1');
    }
    bytes += piece.length;
    tail = piece.length >= tailBytes ? piece.subarray(-tailBytes) : Buffer.concat([tail, piece]).subarray(-tailBytes);
  }
  const wallMs = performance.now() - startedMs;
  // The end of the JSON, then that of a chunked body, if it is one. A compressed body is not read: a broken page lacks its end.
  const isWhole = encoding === 'identity' ? /"complete":true\}\}(\r\n0\r\n\r\n)?$/ : /\r\n0\r\n\r\n$/;
  const [, given = 'identity'] = /\r\ncontent-encoding: (\w+)\r\n/i.exec(head) ?? [];
  const complete = head.startsWith('HTTP/1.1 200 ') && given === encoding && isWhole.test(tail.toString('latin1'));
  return { wallMs, firstByteMs, bytes, complete };
}
