import { defineScript, readLua, replyWord, type Script } from "@konverge/redis";
import { endedPart } from "./ended.ts";
import { labelsPart } from "./labels.ts";

const signature = {
  name: "workflow-relabel",
  keys: ["run"],
  args: {
    epoch: "text",
    id: "text",
    /** All labels of the run (a JSON object). */
    labels: "text",
    /** Prefix of the indexes by status and label. */
    statuses: "text",
  },
} as const;

/** Replaces the labels of a run. `fenced`: another epoch holds the run, or it has ended, and nothing was changed. */
export const relabelScript: Script<typeof signature, "labelled" | "fenced"> = defineScript(
  signature,
  {
    lua: readLua(new URL("relabel.lua", import.meta.url)),
    include: [endedPart, labelsPart],
    answer: (reply) => replyWord(reply, ["labelled", "fenced"]),
  },
);
