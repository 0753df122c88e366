import {
  defineScript,
  readLua,
  replyList,
  replyNumber,
  replyTagged,
  replyText,
  replyTexts,
  replyWord,
  type Reply,
  type Script,
} from "@konverge/redis";
import { endedPart } from "./ended.ts";
import { signalBufferPart } from "./signal-buffer.ts";

export type NewsAnswer =
  | {
      readonly kind: "news";
      readonly wakeSeq: number;
      /** Author and reason (JSON), or empty. */
      readonly cancel: string;
      /** How often the run was cancelled. */
      readonly cancels: number;
      /** Number of unconsumed signals. */
      readonly signalCount: number;
      /** The first signal of each awaited name: numbers and JSON texts in turn. */
      readonly signals: readonly string[];
      /** Places of ended children in the call, from 1. */
      readonly ended: readonly number[];
      readonly isPausing: boolean;
      /** How often the run was resumed. */
      readonly resumes: number;
      /** How often a cancellation was requested, also in vain. */
      readonly cancelCalls: number;
    }
  /** Another epoch holds the run, or it has ended. */
  | { readonly kind: "fenced" };

const signature = {
  name: "workflow-news",
  keys: ["run", "signals", "signalNames"],
  args: {
    epoch: "text",
    /** Names of signals, separated by line breaks. */
    awaited: "text",
  },
  /** Awaited children. */
  each: { keys: ["run"], args: {} },
} as const;

/** Returns what an execution may continue with during its work: signals, ends of children, and a cancellation. */
export const newsScript: Script<typeof signature, NewsAnswer> = defineScript(signature, {
  lua: readLua(new URL("news.lua", import.meta.url)),
  include: [endedPart, signalBufferPart],
  answer: decode,
});

function decode(reply: Reply): NewsAnswer {
  const [kind, ...rest] = replyTagged(reply);
  if (kind !== "news") return { kind: replyWord(kind, ["fenced"]) };
  const [wakeSeq, cancel, cancels, signalCount, signals, ended, pausing, resumes, calls] = rest;
  return {
    kind,
    wakeSeq: replyNumber(wakeSeq),
    cancel: replyText(cancel),
    cancels: replyNumber(cancels),
    signalCount: replyNumber(signalCount),
    signals: replyTexts(signals),
    ended: replyList(ended).map(replyNumber),
    isPausing: replyNumber(pausing) === 1,
    resumes: replyNumber(resumes),
    cancelCalls: replyNumber(calls),
  };
}
