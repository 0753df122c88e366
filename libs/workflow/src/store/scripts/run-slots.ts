import { clockPart, readLua, type LuaPart } from "@konverge/redis";
import { GRACE_MS } from "./clock.ts";

/** Most runs that one script gives a slot; the sweep continues. */
const MOST_GIVEN = 100;
/** Most parents, and their parents, that are searched for the slot of a run. */
export const MOST_ANCESTORS = 100;

/**
 * The slots of runs. The field `slot` of a run is missing before it asks for one, `?<group>` while it waits, `+<group>` while it
 * holds one, `^<id>` if it runs in the slot of that ancestor, and empty after it has given up its place or slot.
 *
 * Beside the index by status, whose prefix is `statuses`: `slotCount` is the number of slots per group, missing for no limit;
 * `slots/<group>` the set of holders, `slotLine/<group>` the waiting runs by the time of their start, `slotLines` the groups with
 * waiting runs, and `slotRests` those among them that may have free slots, for the sweep; `slotBelow/<id>` the runs that run in the
 * slot of this run.
 *
 * `passSlots(statuses, wakes, runRoot, group)` gives free slots to the first waiting runs and returns their ids.
 * `freeSlot(statuses, wakes, run, id, slot)` does so for the slot of a run that ends. Runs that ran in its slot, and outlive it,
 * take slots before, even if none is free: `inheritSlot(statuses, runRoot, id, group)`. `leaveSlotLine(statuses, run, id, slot)`
 * removes a waiting run from its line.
 */
export const runSlotsPart: LuaPart = {
  lua: readLua(new URL("run-slots.lua", import.meta.url)),
  include: [clockPart],
  constants: { GRACE_MS, MOST_GIVEN, MOST_ANCESTORS },
};
