import {
  createDirectKube,
  type Controller,
  type Middleware,
  type Resource,
} from "@konverge/engine";
import type { ApiObject, JsonObject, ResourceType } from "@konverge/core";
import { deepFreeze, resourceId } from "@konverge/core";
import type { AppliedFields, KubeCalls, KubeClient, ObjectDraft } from "@konverge/kube";
import { createObjectStatus, type ObjectStatus } from "../object-status.ts";
import { nameOf, type SimulatedRun } from "./simulated-run.ts";
import { openClient } from "./simulated-workers.ts";
import { SimulatedWire } from "./simulated-wire.ts";
import type { Actor } from "./virtual-clock.ts";

/** The part of a configuration that is simulated. */
export interface SimulatedConfig {
  /** The controllers, which run in one worker. */
  readonly controllers: readonly Controller[];
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
    settled: () => settling.wait(),
    sleep: (ms) =>
      new Promise((resolve) => {
        run.clock.after(run.place(actor), ms, resolve);
      }),
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
