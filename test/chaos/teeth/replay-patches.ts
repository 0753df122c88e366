import type { Change } from "./patches.ts";

const FIND_UNDOS = "libs/workflow/src/execution/find-undos.ts";
const LIVE_WAITS = "libs/workflow/src/execution/live-waits.ts";
const VERB_REPLAY = "libs/workflow/src/execution/verb-replay.ts";
const OPEN_CHILDREN = "libs/workflow/src/execution/open-children.ts";
const RUN_EXECUTION = "libs/workflow/src/execution/run-execution.ts";

type Name =
  | "record-order"
  | "sleep-record"
  | "undo-journal"
  | "unknown-outcome"
  | "code-change"
  | "race-winner"
  | "race-undo"
  | "race-end"
  | "live-events"
  | "live-timers"
  | "heartbeat"
  | "round-records"
  | "round-signals"
  | "spread-end"
  | "spread-outcome"
  | "lost-try"
  | "pause-begin"
  | "resume-news"
  | "second-cancel";

const RUN_STEP = "libs/workflow/src/execution/run-step.ts";

/** As `PATCHES`, for replays of workflows. */
export const REPLAY_PATCHES: Readonly<Record<Name, readonly Change[]>> = {
  /** Delivers each record at once, as soon as the function calls its verb. */
  "record-order": [
    {
      file: "libs/workflow/src/journal/delivery-order.ts",
      from: "this.#turns.splice(at, 0, { key, seq, deliver: resolve });",
      to: "void at; this.#delivered.add(key); this.#skipDelivered(); resolve();",
    },
  ],
  /** Ends a sleep by the clock. */
  "sleep-record": [
    {
      file: "libs/workflow/src/execution/sleep.ts",
      from: 'return await journal.commit(key, { kind: "sleep", untilMs });',
      to: 'return { kind: "sleep", untilMs };',
    },
  ],
  /** Undoes what the replay has met when the function ends. */
  "undo-journal": [
    { file: RUN_EXECUTION, from: "    await journal.order.rest();\n", to: "" },
    {
      file: FIND_UNDOS,
      from: "(record.hasUndo === true || journal.undos.has(step)) &&",
      to: "journal.undos.has(step) &&",
    },
  ],
  /** Forgets steps that have begun without a record. */
  "unknown-outcome": [
    { file: RUN_EXECUTION, from: "await recordUnknownOutcomes(journal);", to: "" },
  ],
  /** Ignores recorded steps that the code no longer calls. */
  "code-change": [
    {
      file: VERB_REPLAY,
      from: "if (!this.#isCompared) await this.#compare();",
      to: "",
    },
  ],
  /** Lets each execution decide anew which branch of a race is first. */
  "race-winner": [
    {
      file: "libs/workflow/src/execution/race.ts",
      from: 'const { branch: winner = "" } = record;',
      to: "const { winner } = await decided;",
    },
  ],
  /** Forgets the steps that had begun in a branch that has lost a race. */
  "race-undo": [
    {
      file: VERB_REPLAY,
      from: "for (const { key } of aborted) await commitLost(journal, key);",
      to: "void [aborted, commitLost];",
    },
    {
      file: FIND_UNDOS,
      from: "for (const step of lost) if (journal.undos.has(step)) begun.add(step);",
      to: "void lost;",
    },
  ],
  /** Lets the branches that have lost a race continue. */
  "race-end": [
    {
      file: "libs/workflow/src/execution/race.ts",
      from: "replay.endBranch(branch, record, children);",
      to: "void [branch, children];",
    },
  ],
  /** Leaves waiting branches alone when an event comes while a body is at work. */
  "live-events": [
    {
      file: LIVE_WAITS,
      from: "(verb) => mayContinue(verb, news) || (isCancelled && verb.wait?.child !== undefined),",
      to: "() => false,",
    },
  ],
  /** Gives a try no heartbeat of the tries before it. */
  heartbeat: [
    {
      file: "libs/workflow/src/execution/run-step.ts",
      from: "last: journal.progressOf(key)?.heartbeat,",
      to: "last: undefined,",
    },
  ],
  /** Lets the next round begin with the records of the one before. */
  "round-records": [
    {
      file: "libs/workflow/src/testing/memory-run-journal.ts",
      from: "  run.steps.clear();\n  run.progress.clear();\n  run.watched = new Set();\n  run.waited = [];\n  run.logged = 0;",
      to: "  run.waited = [];",
    },
  ],
  /** Drops the unconsumed signals at the begin of the next round. */
  "round-signals": [
    {
      file: "libs/workflow/src/testing/memory-run-journal.ts",
      from: "  run.continuedFrom = by.epoch;",
      to: "  run.continuedFrom = by.epoch;\n  run.signals = [];",
    },
  ],
  /** Leaves sleeps and timeouts alone that end while a body is at work. */
  "live-timers": [
    {
      file: LIVE_WAITS,
      from: "this.#cancelTimer = after(ms, () => this.#onTimer());",
      to: "void [after, ms, () => this.#onTimer()];",
    },
  ],
  /** Undoes steps and ends the run while a spread step is at work. */
  "spread-end": [
    {
      file: OPEN_CHILDREN,
      from: "const isSpread = this.#spread.has(step);",
      to: "const isSpread = this.#spread.has(step); if (isSpread) continue;",
    },
  ],
  /** Forgets what spread steps have done that ended after the failure of their run. */
  "spread-outcome": [
    {
      file: OPEN_CHILDREN,
      from: "await this.#journal.commit(step, outcomeOf(run));",
      to: "void outcomeOf;",
    },
  ],
  /** Does not count a try whose worker was lost. */
  "lost-try": [
    {
      file: RUN_STEP,
      from: "const lost = await this.#countLost();",
      to: "const lost = undefined;",
    },
  ],
  /** Begins steps in a run that is to be paused. */
  "pause-begin": [
    {
      file: RUN_STEP,
      from: "|| this.#isOver() || journal.isPausing) {",
      to: "|| this.#isOver()) {",
    },
    {
      file: VERB_REPLAY,
      from: "if (this.journal.isPausing) {",
      to: "if (this.journal === undefined) {",
    },
  ],
  /** Leaves the branches of a resumed run alone while a body is at work. */
  "resume-news": [
    {
      file: LIVE_WAITS,
      from: "journal.pauses.onResumed(() => scope.resume(() => true));",
      to: "journal.pauses.onResumed(() => undefined);",
    },
  ],
  /** Passes only the first cancellation to a child. */
  "second-cancel": [
    {
      file: "libs/workflow/src/execution/await-child.ts",
      from: "{ ...close, passesOn: true }",
      to: "close",
    },
  ],
};
