import { clockPart, readLua, type LuaPart } from "@konverge/redis";

/**
 * The unconsumed signals of a run: a hash of JSON texts by number, and a sorted set, all of one score, of the hash of a name
 * with the number. The signals of one name are therefore a range, and reading them costs nothing for those of other names.
 *
 * `addSignal(run, signals, signalNames, name, text)` and `dropSignal(run, signals, signalNames, name, seq)` also maintain the
 * run's field `signalBytes`. `readSignals(signals, signalNames, name, most)` returns numbers and texts in turn, oldest first.
 */
export const signalBufferPart: LuaPart = {
  lua: readLua(new URL("signal-buffer.lua", import.meta.url)),
  include: [clockPart],
};
