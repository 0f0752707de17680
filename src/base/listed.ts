export function listItems(items: readonly string[], itemsMax = 20, separator = ', '): string {
  if (items.length <= itemsMax) return items.join(separator);
  return `${items.slice(0, itemsMax).join(separator)} and ${items.length - itemsMax} more`;
}
