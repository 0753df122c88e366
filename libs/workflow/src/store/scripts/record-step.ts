import { clockPart, readLua, type LuaPart } from "@konverge/redis";
import { endedPart } from "./ended.ts";

/**
 * The first record of a step stays. `findRecord(run, steps, epoch, step)` returns an answer if there is nothing to record; else
 * nil, the status of a run that is to be paused, and the progress of the step, which `recordStep` replaces.
 */
export const recordStepPart: LuaPart = {
  lua: readLua(new URL("record-step.lua", import.meta.url)),
  include: [endedPart, clockPart],
};
