import { clockPart, readLua, type LuaPart } from "@konverge/redis";
import { endedPart } from "./ended.ts";
import { GRACE_MS } from "./clock.ts";

/**
 * The note of a parent about a child, as the progress of its step: a parent asks only for children that are new or have ended.
 *
 * `noteChildActive(parentRun, round, parentSteps, step)` is called at the start, `noteChildEnd(steps, member, run)` at the end of the
 * child, with its own names. The parent is then due, also if the request for its execution is lost.
 */
export const childNotePart: LuaPart = {
  lua: readLua(new URL("child-note.lua", import.meta.url)),
  include: [endedPart, clockPart],
  constants: { GRACE_MS },
};
