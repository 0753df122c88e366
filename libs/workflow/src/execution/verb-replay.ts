import { callerOf, defined, ensureError, isKonvergeError, KonvergeError } from "@konverge/core";
import { BranchLostError, runningBranch, type Branch, type OpenVerb } from "../journal/branch.ts";
import { never, type ExecutionScope, type Interrupt } from "../journal/execution-scope.ts";
import type { RunJournal } from "../journal/run-journal.ts";
import {
  RACE_LOST,
  REPEAT,
  type RunWait,
  type StepKind,
  type StepRecord,
} from "../store/run-record.ts";
import type { Advance } from "./advance.ts";
import { changeReason, changeWarning } from "./code-change.ts";
import type { OpenChildren } from "./open-children.ts";
import { assertOutsideOfBodies } from "./run-body.ts";
import { errorOf } from "./step-failed-error.ts";

/** Separators of a name from its number, its progress and its notes. */
const FORBIDDEN = /[#~!\p{Cc}]|^(?:undo|update):/u;
const MAX_NAME = 200;

/** The kinds that can wait for long. Their calls are shown with their position in the code. */
const WAITS: ReadonlySet<StepKind> = new Set(["sleep", "signal", "update", "child", "wait"]);

/** Errors of the function, which would fail again. */
const FUNCTION_FAULTS: ReadonlySet<string> = new Set(["invalid_result", "invalid_workflow"]);

/** Replays the journal of a run to the verbs of its function, and continues after the last record. */
export class VerbReplay {
  readonly journal: RunJournal;
  readonly #scope: ExecutionScope;
  readonly #counts = new Map<string, number>();
  /** The key of the running call of each name. */
  readonly #open = new Map<string, string>();
  readonly #isStrict: boolean;
  #isCompared = false;

  constructor(scope: ExecutionScope, journal: RunJournal, isStrict: boolean) {
    this.#isStrict = isStrict;
    this.journal = journal;
    this.#scope = scope;
  }

  /** Returns the name, with a number from its second call on. @throws KonvergeError `invalid_workflow` */
  nextKey(name: string): string {
    assertOutsideOfBodies(name);
    if (typeof name !== "string" || name === "" || name.length > MAX_NAME || FORBIDDEN.test(name)) {
      throw new KonvergeError(
        "invalid_workflow",
        `name "${name}" must be 1 to ${MAX_NAME} characters without #, ~, ! and line breaks, and not begin with "undo:" or "update:"`,
      );
    }
    if (this.#open.has(name)) {
      throw new KonvergeError(
        "invalid_workflow",
        `"${name}" is called while another "${name}" is running; give concurrent steps different names`,
      );
    }
    const count = (this.#counts.get(name) ?? 0) + 1;
    this.#counts.set(name, count);
    return count === 1 ? name : `${name}#${count}`;
  }

  /** Runs a verb. Its name may not be used again until the verb has ended. */
  async exclusively<T>(name: string, verb: (key: string) => Promise<T>): Promise<T> {
    const key = this.nextKey(name);
    this.#open.set(name, key);
    try {
      return await verb(key);
    } finally {
      this.#release(key);
    }
  }

  #release(key: string): void {
    const name = nameOfKey(key);
    if (this.#open.get(name) === key) this.#open.delete(name);
  }

  /** Returns the record of a step, made by `advance` if it is missing. Never settles if the run waits or is interrupted. */
  async settle(
    key: string,
    kind: StepKind,
    advance: () => Promise<Advance>,
    {
      needsRoom = true,
      isSpread = false,
    }: {
      readonly needsRoom?: boolean;
      /** True for a step that other executions run: it ends with its branch as a child does. */
      readonly isSpread?: boolean;
    } = {},
  ): Promise<StepRecord> {
    if (this.#scope.closed) return await never();
    const known = this.journal.get(key);
    if (known !== undefined && known.kind !== kind) {
      return await this.#scope.interrupt({
        kind: "blocked",
        misfit: { step: key, difference: `${known.kind} "${key}" became a ${kind}` },
        reason:
          `the journal has "${key}" as a ${known.kind}, but the code makes it a ${kind}; ` +
          "rename it, or restore the old code; the run resumes when the code fits",
      });
    }
    const branch = runningBranch();
    const { held, order } = this.journal;
    const hasBegun = held.died && order.isReplaying;
    branch?.enter({ key, kind: isSpread ? "child" : kind, hasBegun });
    // The stack is formatted only if the call waits.
    const call = known === undefined && WAITS.has(kind) ? new Error() : undefined;
    const record =
      known ?? (await this.#advance({ step: key, kind }, advance, { needsRoom, call }));
    await order.turn(key, record.seq ?? 0);
    if (branch?.isClosed === true) return await never();
    branch?.leave(key);
    this.#scope.latest = key;
    return record;
  }

  /** Returns a function that tells whether the execution, or the branch that is running now, has ended. */
  isOver(): () => boolean {
    const branch = runningBranch();
    return () => this.#scope.closed || branch?.hasLost === true;
  }

  /** Ends the execution. */
  async interrupt(interrupt: Interrupt): Promise<never> {
    return await this.#scope.interrupt(interrupt);
  }

  /** Returns the steps at work in a branch, which may have had an effect. */
  begunIn(branch: Branch): readonly string[] {
    const isBegun = ({ key, kind, hasBegun }: OpenVerb) => {
      if (kind !== "step" || this.journal.get(key) !== undefined) return false;
      const { attempts = 0, uncounted = 0 } = this.journal.progressOf(key) ?? {};
      return hasBegun || attempts + uncounted > 0;
    };
    return [...branch.open].filter(isBegun).map(({ key }) => key);
  }

  /** Ends the work of a losing branch. The record is that of its race. */
  endBranch(branch: Branch, { lost = [] }: StepRecord, children: OpenChildren): void {
    const open = [...branch.open];
    branch.close();
    this.#scope.dropClosed();
    for (const { key } of open) this.#release(key);
    this.#endOpen(open, { lost, children }).catch((error: unknown) =>
      this.#scope.interrupt(this.journal.interruptOf(ensureError(error))),
    );
  }

  /** Records the aborted steps, and cancels the children. */
  async #endOpen(
    open: readonly OpenVerb[],
    { lost, children }: { readonly lost: readonly string[]; readonly children: OpenChildren },
  ): Promise<void> {
    const { journal } = this;
    const aborted = open.filter(({ key }) => lost.includes(key) && journal.get(key) === undefined);
    const left = open.filter(({ kind, key }) => kind === "child" && children.mustLeave(key));
    if (aborted.length + left.length === 0) return;
    if (!this.#isCompared) {
      await journal.order.rest();
      if (this.#scope.closed) return;
      await this.#compare();
    }
    // The function of a failing run only offers its undos.
    if (!this.#scope.mayWork) return;
    await this.#scope.visit(async () => {
      for (const { key } of aborted) await commitLost(journal, key);
      for (const { key } of left) await children.leave(key);
    });
  }

  /** Blocks a run whose code no longer has the branch that was first in a race. */
  async blockRace(key: string, branch: string): Promise<never> {
    return await this.#scope.interrupt({
      kind: "blocked",
      misfit: { step: key, difference: `race "${key}" has no branch "${branch}" any more` },
      reason:
        `branch "${branch}" was first in the race "${key}", but the code no longer has it; ` +
        "restore the branch; the run resumes when the code fits",
    });
  }

  async #advance(
    wait: RunWait,
    advance: () => Promise<Advance>,
    { needsRoom, call }: { readonly needsRoom: boolean; readonly call: Error | undefined },
  ): Promise<StepRecord> {
    const isOver = this.isOver();
    await this.journal.order.rest();
    if (isOver()) return await never();
    // The function of a failing run only offers its undos.
    if (!this.#scope.mayWork) await this.#scope.park(wait);
    if (!this.#isCompared) await this.#compare();
    const full = needsRoom ? this.journal.findFull() : undefined;
    if (full !== undefined) return await this.#scope.interrupt({ kind: "blocked", reason: full });
    const sinceMs = this.journal.begin(wait.step);
    const begun = () => ({ ...wait, sinceMs, ...defined({ position: call && callerOf(call) }) });
    while (!isOver()) {
      if (this.journal.isPausing) {
        await this.#scope.park(begun());
        continue;
      }
      const { resumptions } = this.#scope;
      const advanced = await this.#attempt(advance);
      if (!("waitUntilMs" in advanced)) return advanced;
      // What arrived in between may have ended the wait.
      if (this.#scope.resumptions !== resumptions && this.#scope.mayWork) continue;
      const { waitUntilMs: untilMs, message, child, spread, limit, objects } = advanced;
      // Continues only while another branch is at work; else, a later execution does.
      await this.#scope.park(
        { ...begun(), ...defined({ untilMs, message, child, spread, limit }) },
        objects,
      );
    }
    return await never();
  }

  async #attempt(advance: () => Promise<Advance>): Promise<Advance> {
    try {
      return await this.#scope.run(advance);
    } catch (thrown) {
      const error = ensureError(thrown);
      if (error instanceof BranchLostError) return { waitUntilMs: undefined };
      if (isKonvergeError(error) && FUNCTION_FAULTS.has(error.code)) throw error;
      return await this.#scope.interrupt(this.journal.interruptOf(error));
    }
  }

  /** Reports once, before the first new work, that the code does not fit the records. */
  async #compare(): Promise<void> {
    this.#isCompared = true;
    const misfit = this.journal.order.misfit();
    if (misfit === undefined) return;
    if (this.#isStrict) {
      await this.#scope.interrupt({ kind: "blocked", reason: changeReason(misfit) });
    }
    this.journal.warn(changeWarning(misfit));
  }
}

function nameOfKey(key: string): string {
  return key.replace(REPEAT, "");
}

/** Records that a step was aborted, so that it is undone in its place if the run fails. */
async function commitLost(journal: RunJournal, key: string): Promise<void> {
  const attempts = Math.max(1, journal.progressOf(key)?.attempts ?? 0);
  const message = "another branch of the race was first; the body was aborted";
  await journal.commit(key, { kind: "step", error: { code: RACE_LOST, message }, attempts });
}

/** Returns the recorded value. @throws the recorded error */
export function valueOf(key: string, { error, value }: StepRecord): unknown {
  if (error !== undefined) throw errorOf(key, error);
  return value;
}
