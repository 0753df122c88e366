import { ensureError } from "@konverge/core";
import type { RunJournalStore } from "../store/run-journal-store.ts";

/** Thrown instead of ending the process. */
export class CrashError extends Error {
  override readonly name = "CrashError";
}

interface Failure {
  readonly error: Error;
  left: number;
  met: boolean;
}

/** A heartbeat of a body. */
export interface TestHeartbeat {
  readonly step: string;
  readonly progress: unknown;
}

/** The faults that a test injects, and the bodies that were run. */
export class TestFaults {
  readonly bodies: string[] = [];
  readonly #failures = new Map<string, Failure>();
  readonly #crashesAfter = new Set<string>();
  readonly #crashesIn = new Set<string>();
  readonly #crashesAtHeartbeat = new Map<string, number>();
  readonly heartbeats: TestHeartbeat[] = [];
  readonly #holds = new Map<string, PromiseWithResolvers<void>>();

  failStep(step: string, error: Error, times: number): void {
    this.#failures.set(step, { error: ensureError(error), left: times, met: times === 0 });
  }

  crashAfter(step: string): void {
    this.#crashesAfter.add(step);
  }

  crashIn(step: string): void {
    this.#crashesIn.add(step);
  }

  crashAtHeartbeat(step: string, nth: number): void {
    this.#crashesAtHeartbeat.set(step, nth);
  }

  /** Counts a heartbeat. Returns true if the process dies with it. */
  dieAtHeartbeat(heartbeat: TestHeartbeat): boolean {
    this.heartbeats.push(heartbeat);
    const { step } = heartbeat;
    const left = this.#crashesAtHeartbeat.get(step);
    if (left === undefined) return false;
    if (left > 1) this.#crashesAtHeartbeat.set(step, left - 1);
    else this.#crashesAtHeartbeat.delete(step);
    return left === 1;
  }

  holdStep(step: string): void {
    if (!this.#holds.has(step)) this.#holds.set(step, Promise.withResolvers());
  }

  /** @throws Error if the step is not held */
  releaseStep(step: string): void {
    const hold = this.#holds.get(step);
    if (hold === undefined) throw new Error(`step "${step}" is not held; call holdStep first`);
    this.#holds.delete(step);
    hold.resolve();
  }

  /** Counts the attempt. Returns the release of the step if the test holds it. @throws the error that the test injects */
  beforeBody(step: string): Promise<void> | undefined {
    this.bodies.push(step);
    const failure = this.#failures.get(step);
    if (failure !== undefined && failure.left > 0) {
      failure.left -= 1;
      failure.met = true;
      throw failure.error;
    }
    return this.#holds.get(step)?.promise;
  }

  /** Returns a `commit` that crashes where the test wants it. */
  commitOf(store: RunJournalStore, crashesAlways: boolean): RunJournalStore["commit"] {
    return async (held, step, record, options) => {
      if (this.#crashesIn.delete(step)) throw new CrashError(`crash in ${step}`);
      const stored = await store.commit(held, step, record, options);
      if (this.#crashesAfter.delete(step) || crashesAlways) {
        throw new CrashError(`crash after ${step}`);
      }
      return stored;
    };
  }

  /** Checks that each fault was met, because a misspelled step name would test nothing. @throws Error */
  assertMet(steps: Iterable<string>): void {
    const unmet = [
      ...[...this.#failures].filter(([, { met }]) => !met).map(([step]) => `failStep("${step}")`),
      ...[...this.#crashesAfter].map((step) => `crashAfter("${step}")`),
      ...[...this.#crashesIn].map((step) => `crashIn("${step}")`),
      ...[...this.#crashesAtHeartbeat.keys()].map((step) => `crashAtHeartbeat("${step}")`),
    ];
    if (unmet.length === 0) return;
    throw new Error(
      `the run ended without reaching ${unmet.join(", ")}; its steps: ${[...steps].join(", ")}`,
    );
  }
}
