import { KonvergeError } from "@konverge/core";
import { createCallHold, type CallHold, type EventRecorder, type KubeHold } from "@konverge/kube";
import type { AttemptPlan, PlannedRun } from "./attempt-plan.ts";

const UNHELD: CallHold = { send: (call, live) => live(call) };

/** Holds the effects of an attempt to its plan. */
export class AttemptHold {
  readonly #plan: AttemptPlan;
  readonly #admit: () => Promise<void>;
  readonly #clusters = new Map<string, KubeHold>();
  readonly #externals: string[];
  readonly #runs: PlannedRun[];
  #deviation: KonvergeError | undefined;

  /** `admit` is called before each effect; its error rejects the effect. */
  constructor(plan: AttemptPlan, admit: () => Promise<void>) {
    this.#plan = plan;
    this.#admit = admit;
    this.#externals = [...plan.externals];
    this.#runs = [...plan.runs];
  }

  /** Holds the calls to a cluster. */
  in(cluster: string): KubeHold {
    const planned = this.#plan.in(cluster).writes.sends;
    const hold = this.#clusters.get(cluster) ?? createCallHold({ planned, admit: this.#admit });
    this.#clusters.set(cluster, hold);
    return hold;
  }

  /** The first effect that the plan does not contain; undefined while the attempt follows it. */
  get deviation(): KonvergeError | undefined {
    const found = [...this.#clusters.values()].find(({ deviation }) => deviation !== undefined);
    return this.#deviation ?? found?.deviation;
  }

  /** Events only report what happens, so they are not held. */
  unheld(recorder: EventRecorder): EventRecorder {
    return {
      record: (client, about, event) =>
        recorder.record(client.scoped({ hold: UNHELD }), about, event),
    };
  }

  /** @throws KonvergeError `approval_stale` for a call that was not planned */
  async external(name: string): Promise<void> {
    await this.#take(this.#externals.indexOf(name), this.#externals, `the call of "${name}"`);
  }

  /** @throws KonvergeError `approval_stale` for a run that was not planned */
  async run({ workflow, id }: PlannedRun): Promise<void> {
    const at = this.#runs.findIndex((run) => run.workflow === workflow && run.id === id);
    await this.#take(at, this.#runs, `the start of a run of "${workflow}"`);
  }

  async #take(at: number, from: unknown[], about: string): Promise<void> {
    if (this.deviation !== undefined) throw this.deviation;
    if (at === -1) {
      const detail = `${about} was not made, because the plan does not contain it`;
      this.#deviation = new KonvergeError("approval_stale", `${detail}; the key is planned again`);
      throw this.#deviation;
    }
    from.splice(at, 1);
    await this.#admit();
  }
}
