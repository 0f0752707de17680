import { isIPv6 } from 'node:net';

const withPort = /^\[([^\]]+)\](?::\d+)?$|^(\d+(?:\.\d+){3}):\d+$/;

/**
 * The key under which limiters count a client address: an IPv4 address, or the /64 of an IPv6 address, because a single customer of
 * an access provider holds a whole /64 (RFC 6177). Some proxies add the port of the connection, which does not count. An IPv4-mapped address (RFC 4291 §2.5.5.2) is the IPv4 address.
 */
export function addressKey(ip: string): string {
  const [, inBrackets, beforePort] = withPort.exec(ip) ?? [];
  const [address = ''] = (inBrackets ?? beforePort ?? ip).split('%'); // a zone names an interface of this machine, not the client
  if (!isIPv6(address)) return address;
  const groups = ipv6Groups(address);
  if (groups.slice(0, 6).join() !== '0,0,0,0,0,65535') return `${groups.slice(0, 4).map(hex).join(':')}::/64`;
  return groups
    .slice(6)
    .flatMap((group) => [group >> 8, group & 255])
    .join('.');
}

/** The eight 16-bit groups of an IPv6 address. */
function ipv6Groups(address: string): number[] {
  const hexOnly = address.replace(/(\d+)\.(\d+)\.(\d+)\.(\d+)$/, (_, a, b, c, d) => {
    return `${hex(Number(a) * 256 + Number(b))}:${hex(Number(c) * 256 + Number(d))}`;
  });
  const [before = [], after = []] = hexOnly.split('::').map((part) => (part === '' ? [] : part.split(':')));
  const zeros = Array.from({ length: 8 - before.length - after.length }, () => '0');
  return [...before, ...zeros, ...after].map((group) => Number.parseInt(group, 16));
}

function hex(group: number): string {
  return group.toString(16);
}
