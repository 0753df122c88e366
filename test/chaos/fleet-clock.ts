/**
 * Loaded before everything else in a worker: its wall clock can be set wrong, at its start and while it runs. The monotonic
 * clock stays right, as it does when somebody sets the clock of a machine.
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
