import {
  clockPart,
  defineScript,
  readLua,
  replyList,
  replyNumber,
  replyTagged,
  replyTexts,
  replyWord,
  type Reply,
  type Script,
} from "@konverge/redis";
import { endedPart } from "./ended.ts";
import { HELD_CHECK_MS } from "./clock.ts";
import { codeFitsPart } from "./code-fits.ts";
import { decodeFollowers, type FollowerNames } from "./followers.ts";
import { linePart } from "./line.ts";
import { movePart } from "./move-run.ts";
import { pausesPart } from "./pauses.ts";
import { runSlotsPart } from "./run-slots.ts";
import { signalBufferPart } from "./signal-buffer.ts";

export type ClaimAnswer =
  /** `fenced`: a newer lease has claimed the run. `waiting`: a run that it replaces, or that is before it in the queue, has not ended; or it waits for a slot. `paused`: until it is resumed. */
  | { readonly kind: "missing" | "fenced" | "waiting" | "paused" }
  /** The code does not fit the run, but that of a live worker does. Only the count of such claims was changed. */
  | { readonly kind: "unfit"; readonly times: number }
  | ({ readonly kind: "ended" } & FollowerNames)
  | {
      readonly kind: "held";
      readonly epoch: number;
      readonly nowMs: number;
      /** Fields and values in turn. */
      readonly run: readonly string[];
      readonly steps: readonly string[];
      /** Number of unconsumed signals. */
      readonly signalCount: number;
      /** The first signal of each awaited name: numbers and JSON texts in turn. */
      readonly signals: readonly string[];
    };

/** The journals of the call are long. Nothing was changed: claim the run with a call of its own. */
interface Alone {
  readonly kind: "alone";
}

/** Records that one call reads, beyond those of its first run. */
const MOST_READ = 200;

const signature = {
  name: "workflow-claim",
  each: {
    keys: ["run", "steps", "signals", "signalNames", "wakes", "codes", "fences"],
    args: {
      /** The epoch of the queue's attempt. */
      lease: "text",
      /** A text that no other attempt has. */
      owner: "text",
      /** Claims also with a lease that is not newer. */
      anew: "flag",
      /** The version of the worker's code, and those that it accepts; empty for code that fits every run. */
      code: "text",
      id: "text",
      /** Prefix of the names of runs. */
      runRoot: "text",
      /** Prefix of the index by status. */
      statuses: "text",
    },
  },
} as const;

/**
 * Claims each run for one execution and returns its state, of its signals only those that its last execution waits for.
 *
 * The same owner twice gets the same epoch, since a lost connection repeats the call.
 */
export const claimScript: Script<typeof signature, readonly (ClaimAnswer | Alone)[]> = defineScript(
  signature,
  {
    lua: readLua(new URL("claim.lua", import.meta.url)),
    include: [
      endedPart,
      clockPart,
      movePart,
      linePart,
      signalBufferPart,
      codeFitsPart,
      pausesPart,
      runSlotsPart,
    ],
    constants: { HELD_CHECK_MS, MOST_READ },
    answer: (reply) => replyList(reply).map(decode),
  },
);

function decode(reply: Reply): ClaimAnswer | Alone {
  const [kind, ...rest] = replyTagged(reply);
  if (kind === "held") {
    const [epoch, nowMs, run, steps, signalCount, signals] = rest;
    return {
      kind,
      epoch: replyNumber(epoch),
      nowMs: replyNumber(nowMs),
      run: replyTexts(run),
      steps: replyTexts(steps),
      signalCount: replyNumber(signalCount),
      signals: replyTexts(signals),
    };
  }
  if (kind === "unfit") return { kind, times: replyNumber(rest[0]) };
  if (kind === "ended") return { kind, ...decodeFollowers(rest) };
  return { kind: replyWord(kind, ["missing", "fenced", "waiting", "paused", "alone"]) };
}
