import {
  defineScript,
  readLua,
  replyTagged,
  replyText,
  replyWord,
  type Reply,
  type Script,
} from "@konverge/redis";
import { endedPart } from "./ended.ts";

export type KeepInputAnswer =
  | { readonly kind: "kept"; readonly input: string }
  /** Another epoch holds the run, or it has ended. Nothing was changed. */
  | { readonly kind: "fenced" };

const signature = {
  name: "workflow-keep-input",
  keys: ["run"],
  args: {
    epoch: "text",
    /** JSON. */
    input: "text",
  },
} as const;

/** Stores the input as the schema has parsed it, once, so that all executions see one value. */
export const keepInputScript: Script<typeof signature, KeepInputAnswer> = defineScript(signature, {
  lua: readLua(new URL("keep-input.lua", import.meta.url)),
  include: [endedPart],
  answer: decode,
});

function decode(reply: Reply): KeepInputAnswer {
  const [kind, input] = replyTagged(reply);
  return kind === "kept"
    ? { kind, input: replyText(input) }
    : { kind: replyWord(kind, ["fenced"]) };
}
