import { KonvergeError } from "@konverge/core";
import { createCallHold, type CallHold, type EventRecorder, type KubeHold } from "@konverge/kube";
import type { ObjectLanes } from "@konverge/lanes";
import type { AttemptPlan, PlannedRun } from "./attempt-plan.ts";

const UNHELD: CallHold = { send: (call, live) => live(call) };

export interface AttemptHoldOptions {
  /** Called before each effect; its error rejects the effect. */
  readonly admit: () => Promise<void>;
  /** True to check the version of an object before each of its writes, not only before the first one. */
  readonly isStrict: boolean;
}

/** Holds the effects of an attempt to its plan. */
export class AttemptHold {
  readonly #plan: AttemptPlan;
  readonly #admit: () => Promise<void>;
  readonly #isStrict: boolean;
  readonly #clusters = new Map<string, KubeHold>();
  readonly #externals: string[];
  readonly #runs: PlannedRun[];
  #deviation: KonvergeError | undefined;

  constructor(plan: AttemptPlan, { admit, isStrict }: AttemptHoldOptions) {
    this.#plan = plan;
    this.#admit = admit;
    this.#isStrict = isStrict;
    this.#externals = [...plan.externals];
    this.#runs = [...plan.runs];
  }

  /** Holds the calls to a cluster. */
  in(cluster: string): KubeHold {
    const known = this.#clusters.get(cluster);
    if (known !== undefined) return known;
    const { writes, objects } = this.#plan.in(cluster);
    const hold = createCallHold({
      planned: writes.sends,
      admit: this.#admit,
      versionOf: (place) => objects.versionOf(place),
      isStrict: this.#isStrict,
    });
    this.#clusters.set(cluster, hold);
    return hold;
  }

  /** The first effect that the plan does not contain; undefined while the attempt follows it. */
  get deviation(): KonvergeError | undefined {
    const found = [...this.#clusters.values()].find(({ deviation }) => deviation !== undefined);
    return this.#deviation ?? found?.deviation;
  }

  /** The attempt waits for its turns, but reads each object itself, as the plan has done: a passed one may be older. */
  lanes(lanes: ObjectLanes): ObjectLanes {
    return {
      enter: async (...options) => ({ ...(await lanes.enter(...options)), carried: undefined }),
      close: () => lanes.close(),
    };
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
