/** Values created on first use, one per list of arguments, and closed together. */
export interface Keyed<Arguments extends readonly unknown[], Value> {
  of(...key: Arguments): Value;
  close(): Promise<void>;
}

export function keyed<Arguments extends readonly unknown[], Value>(
  create: (...key: Arguments) => Value,
  close: (value: Value) => Promise<unknown> = async () => undefined,
): Keyed<Arguments, Value> {
  const values = new Map<string, Value>();
  return {
    of(...key) {
      const id = JSON.stringify(key);
      const value = values.get(id) ?? create(...key);
      values.set(id, value);
      return value;
    },
    async close() {
      await Promise.all([...values.values()].map(close));
    },
  };
}
