import type { KubeClient } from "@konverge/kube";
import type { WorkQueue } from "@konverge/queue";
import type { AnyWorkflow } from "@konverge/workflow";
import type { MemoryRunProcess, ProcessRuns } from "@konverge/workflow/memory";
import { perturbedCall } from "./perturbed-call.ts";
import type { SimulatedFault } from "./fault.ts";
import { CLUSTER, type SimulatedRun } from "./simulated-run.ts";
import type { ActorFaults } from "./simulated-wire.ts";
import { places, type Place } from "./virtual-clock.ts";

type RunStore = Parameters<MemoryRunProcess["storeOf"]>[0];
type Repeat = NonNullable<MemoryRunProcess["repeat"]>;
type AroundBody = NonNullable<MemoryRunProcess["aroundBody"]>;

export interface ProcessRunsOptions {
  readonly client: KubeClient;
  readonly queueOf: (queue: string) => WorkQueue;
  readonly faults: ActorFaults;
}

/** Opens the runs of workflows for a worker. */
export function openProcessRuns(
  run: SimulatedRun,
  place: Place,
  { client, queueOf, faults }: ProcessRunsOptions,
): { readonly calls: ProcessRuns; readonly work: (workflows: readonly AnyWorkflow[]) => void } {
  const { actor } = place;
  const clusters = { home: CLUSTER, client: async () => client };
  const aroundBody: AroundBody = ({ workflow, id }, { step, isLast }, body) => {
    const what = `step ${JSON.stringify(step)} of ${workflow}/${id}`;
    return async (context) =>
      await perturbedCall(run, place, faults, {
        what,
        execute: () => body(context),
        // A fault does not use up the attempts of a step.
        canFail: !isLast,
      });
  };
  const calls = run.workflows.open({
    name: actor.name,
    queueOf,
    storeOf: (store) =>
      new SimulatedStore({ run, place, faults, onWatch: () => calls.watchKinds(clusters) }).of(
        store,
      ),
    aroundBody,
    repeat: repeatWhenNeeded(run, place),
    onError: (error) => run.note(actor.name, `error of a workflow: ${error.message}`),
  });
  return {
    calls,
    work(workflows) {
      calls.work(workflows, clusters);
      void calls.watchKinds(clusters);
    },
  };
}

/** Periodic work of a worker follows changes of runs, and is repeated while runs are executed. Idle time costs nothing. */
function repeatWhenNeeded(run: SimulatedRun, place: Place): Repeat {
  return (round, everyMs, onError) => {
    let [isPlanned, isEnded] = [false, false];
    const plan = () => {
      if (isPlanned || isEnded || place.actor.deadAtMs !== undefined) return;
      isPlanned = true;
      run.clock.after(place, everyMs, () => {
        isPlanned = false;
        round().catch((error: unknown) => onError(error as Error));
        if (run.areRunsExecuted) plan();
      });
    };
    run.onRunChange.add(plan);
    return async () => {
      isEnded = true;
      run.onRunChange.delete(plan);
    };
  };
}

/** The writes of executions to the store, with their texts in the story. */
const WRITES = {
  claim: () => "claim",
  enter: () => "slot",
  keepInput: () => "input",
  commit: (_held: unknown, step: unknown) => `record of ${JSON.stringify(step)}`,
  note: (_held: unknown, step: unknown) => `note of ${JSON.stringify(step)}`,
  watch: () => "watch objects",
  publish: () => "publish",
  leave: (_held: unknown, leave: unknown) => (leave as { readonly kind: string }).kind,
  start: () => "start",
  signal: (_ref: unknown, signal: unknown) =>
    `signal ${JSON.stringify((signal as { readonly name: string }).name)}`,
  cancel: () => "cancel",
} satisfies Partial<Record<keyof RunStore, (...args: readonly unknown[]) => string>>;

interface SimulatedStoreOptions {
  readonly run: SimulatedRun;
  readonly place: Place;
  readonly faults: ActorFaults;
  /** Called when a run waits for objects. */
  readonly onWatch: () => Promise<void>;
}

/** The connection of a worker to the store: virtual latency, and the faults of the run. */
class SimulatedStore {
  readonly #options: SimulatedStoreOptions;

  constructor(options: SimulatedStoreOptions) {
    this.#options = options;
  }

  of(store: RunStore): RunStore {
    const calls = Object.entries(WRITES).map(([name, describe]) => {
      const call = store[name as keyof typeof WRITES] as (...args: unknown[]) => Promise<unknown>;
      const describeCall: (...of: readonly unknown[]) => string = describe;
      const simulated = async (...args: unknown[]): Promise<unknown> => {
        const { workflow, id } = args[0] as { readonly workflow: string; readonly id: string };
        const what = `${describeCall(...args)}, ${workflow}/${id}`;
        const result = await this.#call(what, () => call(...args));
        if (name === "watch") await this.#options.onWatch();
        return result;
      };
      return [name, simulated] as const;
    });
    return { ...store, ...(Object.fromEntries(calls) as Partial<RunStore>) };
  }

  /** Calls of a lost connection are repeated, so that a failed call takes longer, and may be executed twice. */
  async #call<R>(what: string, execute: () => Promise<R>): Promise<R> {
    const { run, faults } = this.#options;
    const place = places.getStore() ?? this.#options.place;
    const { actor } = place;
    const call = place.attempt === undefined ? undefined : run.nextCall({ canConflict: false });
    const find = <K extends SimulatedFault["kind"]>(kind: K) =>
      call?.faults.find(
        (fault): fault is Extract<SimulatedFault, { kind: K }> => fault.kind === kind,
      );
    const [dies, slow, stops, fail] = [find("crash"), find("slow"), find("suspend"), find("fail")];
    if (find("early") !== undefined) run.onEarly();
    const text = `call ${call?.number}: ${what}`;
    if (actor.deadAtMs !== undefined) return await never();
    if (dies?.when === "before") {
      run.note(actor.name, `${text}, not sent: the worker crashes`);
      faults.crash(actor, dies.downMs);
      return await never();
    }
    if (stops?.when === "before") {
      faults.suspend(actor, stops.ms);
      await this.#pass(place, 0);
    }
    await this.#pass(run.cloud, run.latencyMs + (slow?.when === "before" ? slow.ms : 0));
    if (fail !== undefined) {
      if (fail.landed) await settled(places.run(run.cloud, execute));
      await this.#pass(run.cloud, REPEAT_MS);
    }
    const result = await settled(places.run(run.cloud, execute));
    if (call !== undefined) {
      const repeated = fail === undefined ? "" : fail.landed ? " (twice)" : " (late)";
      run.note(actor.name, `${text}${repeated}`);
    }
    run.runChanged();
    if (dies !== undefined) {
      faults.crash(actor, dies.downMs);
      return await never();
    }
    if (stops?.when === "after") faults.suspend(actor, stops.ms);
    await this.#pass(place, run.latencyMs + (slow?.when === "after" ? slow.ms : 0));
    return result();
  }

  #pass(place: Place, ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.#options.run.clock.after(place, ms, resolve);
    });
  }
}

/** Time after which a call without response is repeated, in ms. */
const REPEAT_MS = 500;

const never = (): Promise<never> => new Promise(() => undefined);

/** Resolves to a function with the result of the call. */
async function settled<R>(call: Promise<R>): Promise<() => R> {
  try {
    const result = await call;
    return () => result;
  } catch (error) {
    return () => {
      throw error;
    };
  }
}
