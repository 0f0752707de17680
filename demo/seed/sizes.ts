/** Numbers of rows of a workspace. */
export interface Sizes {
  customers: number;
  installations: number;
  workOrders: number;
  logEntries: number;
}

/** Work orders of the first workspace in the data sets that have a name. */
const named: Readonly<Record<string, number>> = { small: 3_000, large: 200_000 };

/**
 * The sizes for `small`, `large` or a number of work orders.
 * Up to 3,000 work orders: a young company, with few work orders per customer. Beyond that an old one: 20 work orders and 50
 * log entries per customer.
 */
export function sizesOf(rows: string): Sizes {
  const workOrders = named[rows] ?? Number(rows);
  const young = Math.min(workOrders, 3_000);
  return {
    customers: atLeast(Math.max(young / 3, workOrders / 20)),
    installations: atLeast(Math.max(young / 2, workOrders / 10)),
    workOrders,
    logEntries: atLeast(Math.max((young * 5) / 3, workOrders > young ? workOrders * 2.5 : 0)),
  };
}

/** The second workspace, much smaller than the first. */
export function secondSizesOf(first: Sizes): Sizes {
  return {
    customers: atLeast(first.customers / 20),
    installations: atLeast(first.installations / 20),
    workOrders: atLeast(first.workOrders / 20),
    logEntries: atLeast(first.logEntries / 20),
  };
}

/** The traps need a few rows of each kind, however small the data set. */
function atLeast(count: number): number {
  return Math.max(30, Math.round(count));
}
