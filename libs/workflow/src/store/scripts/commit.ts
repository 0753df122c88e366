import {
  defineScript,
  readLua,
  replyTagged,
  replyText,
  replyWord,
  type Reply,
  type Script,
} from "@konverge/redis";
import { ANSWERS_KEPT_MS } from "../run-updates.ts";
import { recordStepPart } from "./record-step.ts";
import { signalBufferPart } from "./signal-buffer.ts";

export type CommitAnswer =
  | {
      readonly kind: "committed" | "exists";
      readonly record: string;
      /** True for a new record of a run that is to be paused. */
      readonly isPausing: boolean;
    }
  /** Nothing was changed. `fenced`: another epoch holds the run, or it has ended. `taken`: the signal is gone. */
  | { readonly kind: "fenced" | "taken" };

const signature = {
  name: "workflow-commit",
  keys: ["run", "steps", "signals", "signalNames", "cancelling", "answers"],
  args: {
    epoch: "text",
    step: "text",
    /** A JSON object that is not empty. */
    record: "text",
    /** Number and name of the signal to consume, or empty. */
    taken: "text",
    takenName: "text",
    /** Id of the update that the record answers, or empty. */
    update: "text",
    /** The run's id if its cancellation is thrown with this record, else empty. */
    cancels: "text",
    /** Of the cancellation. A later one stays requested. */
    cancelNumber: "text",
    /** All warnings of the run (JSON), or empty to keep them. */
    warnings: "text",
    /** All published values (JSON), or empty to keep them. */
    published: "text",
    /** The version of the code, if it is not that of the run; else empty. */
    code: "text",
  },
} as const;

/** Records a step, once. The first record of a step stays, so that all executions see one value. */
export const commitScript: Script<typeof signature, CommitAnswer> = defineScript(signature, {
  lua: readLua(new URL("commit.lua", import.meta.url)),
  include: [recordStepPart, signalBufferPart],
  constants: { ANSWERS_KEPT_MS },
  answer: decode,
});

function decode(reply: Reply): CommitAnswer {
  const [kind, record, pausing] = replyTagged(reply);
  if (kind === "committed" || kind === "exists") {
    return { kind, record: replyText(record), isPausing: pausing !== undefined };
  }
  return { kind: replyWord(kind, ["fenced", "taken"]) };
}
