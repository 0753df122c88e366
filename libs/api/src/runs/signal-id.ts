import { digest } from "../access/digest.ts";

const ID_CHARS = 32;

/**
 * Returns the ID of a signal that the caller gave none. It is derived from the Idempotency-Key, so a request that is repeated
 * because the API died on the way sends nothing twice. Undefined without a key.
 */
export function signalIdOf(
  callerId: string,
  key: string | undefined,
  signal: { readonly name: string; readonly id?: string | undefined },
): string | undefined {
  if (signal.id !== undefined || key === undefined) return signal.id;
  return digest(JSON.stringify(["signal", callerId, key, signal.name]))
    .toString("hex")
    .slice(0, ID_CHARS);
}
