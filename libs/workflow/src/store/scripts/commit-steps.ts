import {
  defineScript,
  readLua,
  replyList,
  replyNumber,
  replyTagged,
  replyText,
  replyWord,
  type Reply,
  type Script,
} from "@konverge/redis";
import { recordStepPart } from "./record-step.ts";

export type StepCommitAnswer =
  /** `isPausing` is true for a run that is to be paused. */
  | {
      readonly kind: "committed";
      readonly seq: number;
      readonly atMs: number;
      readonly isPausing: boolean;
    }
  | { readonly kind: "exists"; readonly record: string }
  /** Another epoch holds the run, or it has ended. Nothing was changed. */
  | { readonly kind: "fenced" };

const signature = {
  name: "workflow-commit-steps",
  each: {
    keys: ["run", "steps"],
    args: {
      epoch: "text",
      step: "text",
      /** A JSON object that is not empty. */
      record: "text",
    },
  },
} as const;

/** Records a step of each of several runs, as `workflow-commit` does for a record that changes nothing else. */
export const commitStepsScript: Script<typeof signature, readonly StepCommitAnswer[]> =
  defineScript(signature, {
    lua: readLua(new URL("commit-steps.lua", import.meta.url)),
    include: [recordStepPart],
    answer: decode,
  });

function decode(reply: Reply): readonly StepCommitAnswer[] {
  const [now, answers] = replyList(reply);
  const atMs = replyNumber(now);
  return replyList(answers).map((each) => {
    const [kind, value, pausing] = replyTagged(each);
    if (kind === "committed") {
      return { kind, seq: replyNumber(value), atMs, isPausing: pausing !== undefined };
    }
    if (kind === "exists") return { kind, record: replyText(value) };
    return { kind: replyWord(kind, ["fenced"]) };
  });
}
