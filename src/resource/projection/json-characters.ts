// Characters of JSON's syntax, which have the same code in a string as in UTF-8.

export const quote = 0x22;
export const comma = 0x2c;
export const openingList = 0x5b;
export const backslash = 0x5c;
export const closingList = 0x5d;
export const openingObject = 0x7b;
export const closingObject = 0x7d;
