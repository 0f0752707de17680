import test from 'ava';
import { addressKey } from '../../src/http/address.js';

test('an IPv4 address is counted by itself, also as an IPv4-mapped IPv6 address', (t) => {
  for (const ip of ['192.0.2.1', '::ffff:192.0.2.1', '::FFFF:c000:201', '0:0:0:0:0:ffff:192.0.2.1'])
    t.is(addressKey(ip), '192.0.2.1', ip);
});

test('IPv6 addresses of one /64 have one key, those of another /64 have another', (t) => {
  const key = '2001:db8:0:a::/64';
  for (const ip of [
    '2001:db8:0:a::1',
    '2001:0DB8:0:000a:ffff:1:2:3',
    '2001:db8::a:0:0:192.0.2.1',
    '2001:db8:0:a::%eth0',
  ])
    t.is(addressKey(ip), key, ip);
  for (const ip of ['2001:db8:0:b::1', '2001:db8::1', '::1', '::', '1::ffff:192.0.2.1']) t.not(addressKey(ip), key, ip);
  t.is(addressKey('::1'), '0:0:0:0::/64');
  t.is(addressKey('fe80::1%lo'), 'fe80:0:0:0::/64');
});

test('the port that some proxies add to an address does not count', (t) => {
  for (const ip of ['192.0.2.1:443', '192.0.2.1:50123', '[::ffff:192.0.2.1]:1']) t.is(addressKey(ip), '192.0.2.1', ip);
  for (const ip of ['[2001:db8:0:a::1]:443', '[2001:db8:0:a::2]']) t.is(addressKey(ip), '2001:db8:0:a::/64', ip);
});
