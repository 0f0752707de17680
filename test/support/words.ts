/** Splits a text: a list of samples that is read at a glance. */
export const words = (text: string): string[] => text.trim().split(/\s+/);
