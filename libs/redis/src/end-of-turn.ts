let waiting: (() => void)[] = [];

/**
 * Calls once at the end of this turn of the event loop, after the replies that have arrived in it were handled. The calls run in
 * order, those included that are added meanwhile. They must not throw.
 */
export function atEndOfTurn(call: () => void): void {
  waiting.push(call);
  if (waiting.length === 1) setImmediate(run);
}

function run(): void {
  try {
    for (const call of waiting) call();
  } finally {
    waiting = [];
  }
}
