/**
 * Shares a read of Redis among all who ask within one turn of the event loop: what is written in a turn leaves at its end,
 * so it is as fresh for the first as for the last.
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
