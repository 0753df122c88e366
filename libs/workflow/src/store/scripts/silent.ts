import {
  clockPart,
  defineScript,
  readLua,
  replyList,
  replyNumber,
  replyTexts,
  type Reply,
  type Script,
} from "@konverge/redis";
import type { Silence } from "../run-queries.ts";

/** Delay before a silent run is returned again, in ms. */
export const AGAIN_MS = 5_000;

const signature = {
  name: "workflow-silent",
  keys: ["silent"],
  args: {
    most: "number",
    /** Prefixes of the names of runs and of their steps. */
    runRoot: "text",
    stepsRoot: "text",
  },
} as const;

/**
 * Returns the runs with a body that has not sent its heartbeat in time, with the lease of their execution. A body that has ended
 * since, or whose execution has, is forgotten here instead of with each record.
 */
export const silentScript: Script<typeof signature, Silence> = defineScript(signature, {
  lua: readLua(new URL("silent.lua", import.meta.url)),
  include: [clockPart],
  constants: { AGAIN_MS },
  answer: decode,
});

function decode(reply: Reply): Silence {
  const [found, nextMs] = replyList(reply);
  const flat = replyTexts(found);
  const lost = flat.flatMap((id, at) =>
    at % 2 === 0 ? [{ id, lease: Number(flat[at + 1]) }] : [],
  );
  const next = replyNumber(nextMs);
  return next < 0 ? { lost } : { lost, nextMs: next };
}
