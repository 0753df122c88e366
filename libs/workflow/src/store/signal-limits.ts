import type { RunRef } from "../define/run-ref.ts";

/** Most signals that a run buffers, and the size of their JSON texts. */
export const MAX_BUFFERED = 1_000;
export const MAX_BUFFERED_BYTES = 1_048_576;

/** How many of the last signal ids a run remembers, to store none twice. */
export const MOST_SEEN = 10_000;

/** How many of the last refused signals are kept for users. */
export const MOST_REFUSALS = 10;

/** Most signals of one read. */
export const READ_AT_ONCE = 100;

/** Returns the error text of a rejected signal. */
export function describeFull({ id }: RunRef): string {
  return (
    `run ${id} has too many unconsumed signals; it buffers up to ${MAX_BUFFERED} signals of ` +
    `${MAX_BUFFERED_BYTES} bytes in total; wait until it has consumed some, or send smaller payloads`
  );
}
