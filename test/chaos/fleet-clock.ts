/**
 * Preloaded by a worker, so that its wall clock can be set wrong at its start and at run time. The monotonic clock stays
 * correct, as it does when a machine's clock is set.
 */
const real = Date.now.bind(Date);
let offsetMs = Number(process.env["FLEET_CLOCK_OFFSET_MS"] ?? 0);

class ShiftedDate extends Date {
  constructor(...parts: readonly []) {
    // Only the form without arguments reads the clock.
    if (parts.length === 0) super(real() + offsetMs);
    else super(...parts);
  }
  static override now(): number {
    return real() + offsetMs;
  }
}
globalThis.Date = ShiftedDate as DateConstructor;

process.on("message", (order: { readonly kind?: string; readonly offsetMs?: number }) => {
  if (order.kind === "clock") offsetMs = order.offsetMs ?? 0;
});
// Listening for commands must not keep a stopped worker alive.
process.channel?.unref();
