import {
  defineScript,
  readLua,
  replyTagged,
  replyText,
  replyWord,
  type Reply,
  type Script,
} from "@konverge/redis";
import { clockPart, GRACE_MS } from "./clock.ts";
import { movePart } from "./move-run.ts";
import { noteCancelPart } from "./note-cancel.ts";

export type StartAnswer =
  | { readonly kind: "exists" }
  | { readonly kind: "attached" | "rejected"; readonly holder: string }
  /** `replaces`: id of the run that it replaces, or empty. */
  | { readonly kind: "created"; readonly replaces: string };

const signature = {
  name: "workflow-start",
  keys: ["run", "wakes", "index", "cancelling", "holder"],
  args: {
    id: "text",
    version: "text",
    /** JSON, or empty. */
    input: "text",
    /** Or empty. */
    key: "text",
    /** attach, reject or supersede. */
    onExisting: "text",
    /** Both empty for a run without a parent. */
    parentWorkflow: "text",
    parent: "text",
    /** Prefix of the names of runs. */
    runRoot: "text",
    /** Prefix of the index by status. */
    statuses: "text",
    /** The caller, or empty. */
    by: "text",
    /** The run that this one retries, with author and reason (JSON), or empty. */
    retry: "text",
    /** Of the object that the run is for; both empty for none. */
    uid: "text",
    generation: "text",
    /** Key to request when the run ends, or empty. */
    notify: "text",
  },
} as const;

/**
 * Creates a run, unless its id exists or its key is taken.
 *
 * A run for an older generation than that of the last one with its key does not start, also if that one has ended: its
 * caller has been overtaken. A run that replaces another waits until that has ended; the other one is cancelled in the same
 * step.
 */
export const startScript: Script<typeof signature, StartAnswer> = defineScript(signature, {
  lua: readLua(new URL("start.lua", import.meta.url)),
  include: [clockPart, noteCancelPart, movePart],
  constants: { GRACE_MS },
  answer: decode,
});

function decode(reply: Reply): StartAnswer {
  const [kind, id] = replyTagged(reply);
  if (kind === "created") return { kind, replaces: replyText(id) };
  if (kind === "exists") return { kind };
  return { kind: replyWord(kind, ["attached", "rejected"]), holder: replyText(id) };
}
