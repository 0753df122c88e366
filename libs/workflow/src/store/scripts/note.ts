import {
  clockPart,
  defineScript,
  readLua,
  replyTagged,
  replyText,
  replyWord,
  type Reply,
  type Script,
} from "@konverge/redis";
import { endedPart } from "./ended.ts";

export type NoteAnswer =
  | { readonly kind: "noted"; readonly progress: string }
  /** Another epoch holds the run, or it has ended. Nothing was changed. */
  | { readonly kind: "fenced" };

const signature = {
  name: "workflow-note",
  keys: ["run", "steps", "silent"],
  args: {
    /** Of the run. */
    id: "text",
    epoch: "text",
    step: "text",
    /** Attempts that failed. */
    attempts: "text",
    /** From now. */
    delayMs: "number",
    /** Keeps what is stored already. */
    keep: "flag",
    /** Further fields (a JSON object), or empty. */
    more: "text",
    /** Time of the step's heartbeat, or empty. */
    beatAtMs: "text",
    /** From now: without a further note by then, the worker counts as lost. Or empty. */
    silentMs: "text",
  },
} as const;

/**
 * Stores the progress of an unfinished step, or a heartbeat of its body. It is kept beside the records, under the step's name and a tilde, which no name
 * contains.
 */
export const noteScript: Script<typeof signature, NoteAnswer> = defineScript(signature, {
  lua: readLua(new URL("note.lua", import.meta.url)),
  include: [endedPart, clockPart],
  answer: decode,
});

function decode(reply: Reply): NoteAnswer {
  const [kind, progress] = replyTagged(reply);
  return kind === "noted"
    ? { kind, progress: replyText(progress) }
    : { kind: replyWord(kind, ["fenced"]) };
}
