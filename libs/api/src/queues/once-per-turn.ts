/**
 * Shares a read of Redis between all callers in one turn of the event loop. Commands of a turn are sent together at its end,
 * so the result is equally fresh for all callers.
 */
export function oncePerTurn<T>(read: () => Promise<T>): () => Promise<T> {
  let reading: Promise<T> | undefined;
  return () => {
    if (reading === undefined) {
      reading = read();
      setImmediate(() => {
        reading = undefined;
      });
    }
    return reading;
  };
}
