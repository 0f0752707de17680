/** A decimal literal → its significant digits and exponent: 1.50, 15e-1 and 1.5 give the same text. */
export function decimal(literal: string): string {
  const match = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(literal);
  if (match === null) return literal; // Infinity
  const [, sign, whole, fraction = '', exponent = '0'] = match as unknown as [string, string, string, string?, string?];
  const digits = (whole + fraction).replace(/^0+/, '');
  let end = digits.length; // not /0+$/, which is quadratic in a long run of zeros
  while (digits[end - 1] === '0') end--;
  const significant = digits.slice(0, end);
  if (significant === '') return '0';
  return `${sign}${significant}e${Number(exponent) - fraction.length + digits.length - significant.length}`;
}
