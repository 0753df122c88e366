import {
  createDirectKube,
  type Controller,
  type Middleware,
  type Resource,
} from "@konverge/engine";
import type { ApiObject, JsonObject, ResourceType } from "@konverge/core";
import { deepFreeze, resourceId } from "@konverge/core";
import type { AppliedFields, KubeCalls, KubeClient, ObjectDraft } from "@konverge/kube";
import type { AnyWorkflow, RunRef, StartedWorkflow, StartOptions } from "@konverge/workflow";
import { createObjectStatus, type ObjectStatus } from "../object-status.ts";
import { stateOf, type SimulatedRunState } from "./run-state.ts";
import { nameOf, type SimulatedRun } from "./simulated-run.ts";
import { openClient } from "./simulated-workers.ts";
import { SimulatedWire } from "./simulated-wire.ts";
import type { Actor } from "./virtual-clock.ts";

/** The part of a configuration that is simulated. */
export interface SimulatedConfig {
  /** The controllers, which run in one worker. */
  readonly controllers?: readonly Controller[];
  /** The workflows, which the same worker executes. */
  readonly workflows?: readonly AnyWorkflow[];
  /** Middleware of all controllers. */
  readonly use?: readonly Middleware[];
  /** Further resources whose CRDs are installed. */
  readonly resources?: readonly Resource[];
}

/** The objects of the simulated cluster, for invariants. */
export interface SimulatedObjects {
  /** All objects of a kind, by name. */
  list<T extends ApiObject>(type: ResourceType<T>): T[];
  /** One object; the default namespace is `default`. */
  get<T extends ApiObject>(type: ResourceType<T>, name: string, namespace?: string): T | undefined;
  /** The runs of a workflow, oldest first. */
  runs(workflow: Pick<AnyWorkflow, "name">): SimulatedRunState[];
}

/** The user of the simulated cluster. */
export interface SimulatedUser extends SimulatedObjects, ObjectStatus {
  /** The calls of a handler, without faults; the default namespace is `default`. */
  readonly kube: KubeCalls<"handler">;
  /** Applies an object by server-side apply, and takes over fields of other managers. */
  apply<T extends ApiObject>(
    type: ResourceType<T>,
    object: ObjectDraft<T> | AppliedFields<T>,
  ): Promise<T>;
  /** Requests the deletion of an object. */
  delete(object: ApiObject): Promise<void>;
  /**
   * Starts a run of a workflow. Default of the id: the number of the start, such as `run-1`.
   * @throws KonvergeError as `Workflows.start`
   */
  start<I>(
    workflow: StartedWorkflow<I>,
    input: NoInfer<I>,
    options?: Pick<StartOptions, "id" | "key" | "labels" | "onExisting">,
  ): Promise<RunRef>;
  /** Sends a signal to a run. */
  signal(run: RunRef, name: string, payload?: unknown): Promise<void>;
  /** Cancels a run. */
  cancel(run: RunRef): Promise<void>;
  /**
   * Waits until the controllers are at rest. A run with faults may continue earlier, since users do not wait for controllers
   * either.
   */
  settled(): Promise<void>;
  /** Lets virtual time pass, in ms. */
  sleep(ms: number): Promise<void>;
}

/** Returns why an invariant does not hold; undefined if it holds. */
export type Invariant = (objects: SimulatedObjects) => string | undefined | void;

/** A change of the cluster by another program, such as a Deployment that becomes ready. */
export interface SimulatedReaction<T extends ApiObject = ApiObject> {
  /** The kind whose objects change. */
  readonly type: ResourceType<T>;
  /** Called for a new object and a new generation. */
  readonly change: (object: T, user: SimulatedUser) => Promise<unknown>;
}

/** The changes of users, and the invariants. */
export interface Scenario {
  /** Makes the changes of users. All faults end with it. */
  readonly run: (user: SimulatedUser) => Promise<void>;
  /** The reactions of other controllers of the cluster. Default: only garbage collection and the end of deletions. */
  // oxlint-disable-next-line typescript/no-explicit-any -- each has the kind of its own type
  readonly reactions?: readonly SimulatedReaction<any>[];
  /** Invariants that hold after each change of an object, by description. */
  readonly always?: Readonly<Record<string, Invariant>>;
  /** Invariants that hold when the controllers are at rest after the scenario, by description. */
  readonly finally?: Readonly<Record<string, Invariant>>;
  /**
   * True for controllers that change objects by the clock: they are at rest when only timers are left. Default false: a timer
   * runs until its attempts change nothing.
   */
  readonly periodic?: boolean;
  /**
   * Returns the parts of an object that must equal those of the run without faults; undefined if none must. Default: all
   * except times, versions, uids and values that the server generates.
   */
  readonly compare?: (object: ApiObject) => unknown;
  /**
   * As `compare`, for workflow runs. Default: the status, the result, the code of the error and the names of the recorded steps. Of the
   * runs with one key, the last one is compared.
   */
  readonly compareRun?: (run: SimulatedRunState) => unknown;
}

/** A configuration and a scenario, as a file for `konverge simulate` exports them. */
export interface Simulation {
  /** As for `simulate`. */
  readonly config: SimulatedConfig | (() => SimulatedConfig);
  /** The scenario that each seed plays. */
  readonly scenario: Scenario;
}

/** Longest time that a scenario waits for controllers, in virtual ms. */
const SETTLE_MS = 1_800_000;

/** Reads the store of a run. */
export function objectsOf(run: SimulatedRun): SimulatedObjects {
  const list = <T extends ApiObject>(type: ResourceType<T>) =>
    deepFreeze(run.server.objects(resourceId(type))) as unknown as T[];
  return {
    list,
    get: (type, name, namespace = "default") =>
      list(type).find(
        ({ metadata }) =>
          metadata.name === name &&
          (metadata.namespace === undefined || metadata.namespace === namespace),
      ),
    runs: ({ name }) => deepFreeze(run.workflows.of(name).map(stateOf)),
  };
}

/** Opens the calls of an actor that has no faults. */
export function openUser(run: SimulatedRun, name: string, settling: Settling): SimulatedUser {
  const actor: Actor = { name };
  const client: KubeClient = openClient(new SimulatedWire({ run, actor }), name, run.clock.random);
  const kube = createDirectKube(client, "default");
  const typeOf = ({ apiVersion, kind }: ApiObject) => client.resolveType(apiVersion, kind);
  return {
    ...objectsOf(run),
    ...createObjectStatus(client),
    kube,
    apply: async (type, object) => {
      const { metadata, name: short } = object as { metadata?: { name?: string }; name?: string };
      run.note(name, `applies ${type.kind} ${metadata?.name ?? short ?? ""}`);
      return await kube.apply(type, object, { force: true });
    },
    delete: async (object) => {
      run.note(name, `deletes ${object.kind} ${nameOf(object as unknown as JsonObject)}`);
      await client.delete(await typeOf(object), object.metadata);
    },
    ...userOfRuns(run, actor),
    settled: () => settling.wait(),
    sleep: (ms) =>
      new Promise((resolve) => {
        run.clock.after(run.place(actor), ms, resolve);
      }),
  };
}

function userOfRuns(
  run: SimulatedRun,
  actor: Actor,
): Pick<SimulatedUser, "cancel" | "signal" | "start"> {
  const { name } = actor;
  const place = run.place(actor);
  const process = {
    name,
    silentSinceMs: () => undefined,
    after: () => undefined,
    attempt: () => undefined,
  };
  const calls = run.workflows.open({
    name,
    queueOf: (queue) => run.queues.open(queue, process),
    storeOf: (store) => store,
    onError: () => undefined,
  });
  let starts = 0;
  /** Users call the HTTP API. */
  const send = async <R>(text: string, call: () => Promise<R>): Promise<R> => {
    await new Promise<void>((resolve) => {
      run.clock.after(place, run.latencyMs, resolve);
    });
    run.note(name, text);
    const result = await call();
    run.runChanged();
    return result;
  };
  return {
    start: async (workflow, input, options = {}) => {
      starts += 1;
      const { id = `run-${starts}` } = options;
      const started = await send(`starts ${workflow.name}/${id}`, () =>
        calls.start(workflow, input, { ...options, id, by: name }),
      );
      return { workflow: workflow.name, id: started.id };
    },
    signal: (ref, signal, payload) =>
      send(`signals ${signal} to ${ref.workflow}/${ref.id}`, () =>
        calls.signal(ref, signal, { payload, by: name }),
      ),
    cancel: async (ref) => {
      await send(`cancels ${ref.workflow}/${ref.id}`, () => calls.cancel(ref, { by: name }));
    },
  };
}

/** The waits of a scenario for controllers at rest. */
export class Settling {
  readonly #run: SimulatedRun;
  #waiting: { readonly resolve: () => void; readonly untilMs: number } | undefined;

  constructor(run: SimulatedRun) {
    this.#run = run;
    run.onEarly = () => this.end("continues without waiting");
  }

  wait(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting = { resolve, untilMs: this.#run.clock.nowMs + SETTLE_MS };
    });
  }

  /** Ends the wait if nothing is left to wait for. True if it ended one. */
  check(): boolean {
    if (this.#waiting === undefined) return false;
    const isLate = this.#run.clock.nowMs >= this.#waiting.untilMs;
    if (!isLate && !this.#run.isAtRest) return false;
    this.end(
      isLate
        ? "continues although the controllers are not at rest"
        : "continues: the controllers are at rest",
    );
    return true;
  }

  end(why: string): void {
    if (this.#waiting === undefined) return;
    this.#run.note("user", why);
    this.#waiting.resolve();
    this.#waiting = undefined;
  }
}
