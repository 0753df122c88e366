import { defined, ensureError, isKonvergeError, KonvergeError } from "@konverge/core";
import { never, type ExecutionScope, type Interrupt } from "../journal/execution-scope.ts";
import type { RunJournal } from "../journal/run-journal.ts";
import type { RunWait, StepKind, StepRecord } from "../store/run-record.ts";
import type { Advance } from "./advance.ts";
import { changeReason, changeWarning } from "./code-change.ts";
import { assertOutsideOfBodies } from "./run-body.ts";
import { errorOf } from "./step-failed-error.ts";

/** Separators of a name from its number, its progress and its notes. */
const FORBIDDEN = /[#~!\p{Cc}]|^(?:undo|update):/u;
const MAX_NAME = 200;

/** Errors of the function, which would fail again. */
const FUNCTION_FAULTS: ReadonlySet<string> = new Set(["invalid_result", "invalid_workflow"]);

/** Replays the journal of a run to the verbs of its function, and continues after the last record. */
export class VerbReplay {
  readonly journal: RunJournal;
  readonly #scope: ExecutionScope;
  readonly #counts = new Map<string, number>();
  readonly #open = new Set<string>();
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
    this.#open.add(name);
    try {
      return await verb(key);
    } finally {
      this.#open.delete(name);
    }
  }

  /** Returns the record of a step, made by `advance` if it is missing. Never settles if the run waits or is interrupted. */
  async settle(
    key: string,
    kind: StepKind,
    advance: () => Promise<Advance>,
    { needsRoom = true }: { readonly needsRoom?: boolean } = {},
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
    const record = known ?? (await this.#advance({ step: key, kind }, advance, needsRoom));
    await this.journal.order.turn(key, record.seq ?? 0);
    this.#scope.latest = key;
    return record;
  }

  /** Ends the execution. */
  async interrupt(interrupt: Interrupt): Promise<never> {
    return await this.#scope.interrupt(interrupt);
  }

  async #advance(
    wait: RunWait,
    advance: () => Promise<Advance>,
    needsRoom: boolean,
  ): Promise<StepRecord> {
    await this.journal.order.rest();
    if (this.#scope.closed) return await never();
    // The function of a failing run only offers its undos.
    if (!this.#scope.mayWork) await this.#scope.park(wait);
    if (!this.#isCompared) await this.#compare();
    const full = needsRoom ? this.journal.findFull() : undefined;
    if (full !== undefined) return await this.#scope.interrupt({ kind: "blocked", reason: full });
    const sinceMs = this.journal.begin(wait.step);
    while (!this.#scope.closed) {
      if (this.journal.isPausing) {
        await this.#scope.park({ ...wait, sinceMs });
        continue;
      }
      const { resumptions } = this.#scope;
      const advanced = await this.#attempt(advance);
      if (!("waitUntilMs" in advanced)) return advanced;
      // What arrived in between may have ended the wait.
      if (this.#scope.resumptions !== resumptions && this.#scope.mayWork) continue;
      const { waitUntilMs: untilMs, message, child, objects } = advanced;
      // Continues only while another branch is at work; else, a later execution does.
      await this.#scope.park(
        { ...wait, sinceMs, ...defined({ untilMs, message, child }) },
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

/** Returns the recorded value. @throws the recorded error */
export function valueOf(key: string, { error, value }: StepRecord): unknown {
  if (error !== undefined) throw errorOf(key, error);
  return value;
}
