import { clockPart, readLua, type LuaPart } from "@konverge/redis";
import { CODE_TTL_MS } from "../code-version.ts";

/**
 * `codeFits(code, version, continuedBy)` returns true if code may continue a run of that version, and `liveCodeFits(codes,
 * version, continuedBy)` if the code of a live worker may. `liveCodes(codes)` returns the code by live worker, and the dead
 * workers. `codes` is a hash by worker: the time of its last announcement and its code.
 */
export const codeFitsPart: LuaPart = {
  lua: readLua(new URL("code-fits.lua", import.meta.url)),
  include: [clockPart],
  constants: { CODE_TTL_MS },
};
