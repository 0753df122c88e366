import {
  compareResourceVersions,
  defined,
  isKonvergeError,
  KonvergeError,
  linkAbort,
  resourceId,
  type ApiObject,
  type Limits,
  type ResourceType,
  type CallPriority,
} from "@konverge/core";
import {
  Urgency,
  type CallObserver,
  type EventRecorder,
  type KubeClient,
  type MutateOptions,
  type NamespacedName,
} from "@konverge/kube";
import type { ObjectLanes } from "@konverge/lanes";
import type { AttemptLease } from "@konverge/queue";
import type { AttemptSpan } from "@konverge/telemetry";
import type { Controller } from "../define/define-controller.ts";
import type { Log } from "../define/log.ts";
import type { Middleware } from "../define/middleware.ts";
import type { RunStarter } from "../define/start-run.ts";
import { assertNotOwner } from "./assert-not-owner.ts";
import type { AttemptHold } from "./attempt-hold.ts";
import { NO_LANES, type AttemptPlan } from "./attempt-plan.ts";
import type { AttemptTape } from "./attempt-tape.ts";
import { createAttemptTrace, type AttemptTrace } from "./attempt-trace.ts";
import { createFreshReads, type FreshReads } from "./fresh-reads.ts";
import type { MembershipQuery } from "./membership-query.ts";
import type { ObjectCache } from "./object-cache.ts";
import { createOpenCalls, type OpenCalls } from "./open-calls.ts";
import { createWriteGroups, type WriteGroups } from "./write-group.ts";

/** What all attempts of a controller in one worker share. */
export interface ControllerRuntime {
  readonly controller: Controller;
  /** Middleware of the configuration and of the controller, the first one outermost. */
  readonly use: readonly Middleware[];
  readonly client: KubeClient;
  /** True if the controller reconciles objects of the namespace. May read the Namespace. */
  readonly isInScope: (namespace: string, query: MembershipQuery) => boolean | Promise<boolean>;
  readonly cache: ObjectCache;
  readonly lanes: ObjectLanes;
  readonly groups: WriteGroups;
  /** Retries of a conflict inside the handler. */
  readonly retry: MutateOptions["retry"];
  /** Opened by the first handler that starts a run. */
  readonly runs: (() => RunStarter) | undefined;
  readonly events: EventRecorder;
  /** The named limits of the configuration. */
  readonly limits: Limits | undefined;
  /** The other clusters that handlers can reach. */
  readonly clusters: ReachableClusters | undefined;
}

/** Another cluster, with its own guard and lanes. */
export interface ReachedCluster {
  readonly client: KubeClient;
  readonly lanes: ObjectLanes;
}

export interface ReachableClusters {
  /** @throws KonvergeError `invalid_request` for an unknown cluster, `deferred` for one that cannot be reached now */
  reach(cluster: string): Promise<ReachedCluster>;
}

export interface AttemptOptions {
  readonly log: Log;
  readonly span: AttemptSpan | undefined;
  /** For the calls to another cluster: the attempt that makes them. */
  readonly of?: Attempt;
  /** Set if the attempt is a plan. */
  readonly plan?: AttemptPlan;
  /** Set if the attempt may only make the writes of a plan. */
  readonly hold?: AttemptHold;
  /** Set if the attempt is recorded or replayed. */
  readonly tape?: AttemptTape;
}

/** Shared by all attempts: an error with its stack per attempt would cost more than the rest of its end. */
const ENDED = new KonvergeError("attempt_ended", "the attempt has ended");

/** The cache of another cluster or of a plan, which is always empty: objects are read from the API server. */
export const NO_CACHE: ObjectCache = {
  list: async () => undefined,
  find: async () => undefined,
  noteWrite: () => undefined,
  noteDelete: () => undefined,
  noteConflict: () => undefined,
};

const UNOBSERVED: CallObserver = { headers: {}, ended: () => undefined };

/** One attempt while it runs: its time limits, its access to the API server, and the trace of its calls. */
export class Attempt {
  readonly lease: AttemptLease;
  readonly runtime: ControllerRuntime;
  readonly log: Log;
  readonly trace: AttemptTrace;
  readonly openCalls: OpenCalls;
  readonly freshReads: FreshReads;
  /** Of its calls, while it holds object lanes. */
  readonly urgency: Urgency = new Urgency();
  /** Aborted when the attempt must end. */
  readonly signal: AbortSignal;
  /** The object as read at the start; undefined if it does not exist or could not be read. */
  object: ApiObject | undefined = undefined;
  /** Undefined unless the attempt is a plan. */
  readonly plan: AttemptPlan | undefined;
  /** Undefined unless the attempt is held to a plan. */
  readonly hold: AttemptHold | undefined;
  /** Undefined unless the attempt is recorded or replayed. */
  readonly tape: AttemptTape | undefined;
  readonly #of: Attempt | undefined;
  readonly #span: AttemptSpan | undefined;
  #client: KubeClient;
  #isOpen = true;
  readonly #abort = new AbortController();

  constructor(lease: AttemptLease, runtime: ControllerRuntime, options: AttemptOptions) {
    const { log, span, of } = options;
    this.plan = of?.plan ?? options.plan;
    this.hold = of?.hold ?? options.hold;
    this.tape = of?.tape ?? options.tape;
    const freshReads = createFreshReads();
    this.freshReads = this.tape?.freshReads(freshReads) ?? freshReads;
    this.lease = lease;
    this.runtime = runtime;
    this.log = log;
    this.#of = of;
    this.#span = span;
    this.trace =
      of === undefined
        ? createAttemptTrace(span, lease.keepLog)
        : of.trace.remote(lease.key.cluster);
    this.openCalls = of?.openCalls ?? createOpenCalls();
    this.signal = of?.signal ?? this.#abort.signal;
    linkAbort(this.#abort, lease.signal);
    this.#client = this.#bindClient();
  }

  /** Bound to this attempt: its signal, priority and trace. */
  get client(): KubeClient {
    return this.#client;
  }

  /** False once the attempt has ended; all later calls are rejected. */
  get isOpen(): boolean {
    return this.#of?.isOpen ?? this.#isOpen;
  }

  /** The calls of this attempt to another cluster. They share the attempt's end, waits and secrets, but not its reads. */
  on(cluster: string, { client, lanes }: ReachedCluster): Attempt {
    const { floor: _version, ...lease } = this.lease;
    const runtime = {
      ...this.runtime,
      client,
      lanes:
        this.plan === undefined
          ? (this.hold?.lanes(lanes) ?? this.tape?.lanes(cluster, lanes) ?? lanes)
          : NO_LANES,
      cache: NO_CACHE,
      groups: createWriteGroups(),
    };
    return new Attempt(
      // The versions of requests are those of the own cluster.
      { ...lease, key: { ...lease.key, cluster }, triggers: [] },
      { ...runtime, isInScope: () => true },
      { log: this.log, span: this.#span, of: this },
    );
  }

  /** The name of the reconciled object. */
  get target(): NamespacedName {
    const { namespace, name } = this.lease.key;
    return { name, ...defined({ namespace }) };
  }

  /** Of the attempt's calls. Those of background requests have the priority of resyncs. */
  get priority(): CallPriority {
    const { class: requestClass } = this.lease;
    return requestClass === "background" ? "resync" : requestClass;
  }

  /** Deletions go before retries and resyncs, including retries of their own cleanup. */
  prioritizeDeletion(): void {
    const { class: requestClass } = this.lease;
    const isBehind = requestClass === "retry" || requestClass === "background";
    if (isBehind) this.#client = this.#client.scoped({ priority: "event" });
  }

  /** Runs a call of the handler. Deferrals are recorded even if the handler catches them. */
  async call<R>(run: () => Promise<R>): Promise<R> {
    if (!this.isOpen) {
      throw new KonvergeError(
        "attempt_ended",
        "the attempt has ended; await every call before the handler returns",
      );
    }
    this.openCalls.begin();
    try {
      const answer = await run();
      this.openCalls.end();
      return answer;
    } catch (error) {
      this.openCalls.end({ thrown: error });
      if (isKonvergeError(error) && error.code === "deferred") this.trace.noteDeferred(error);
      throw error;
    }
  }

  /** The newest version of a kind in the requests for this attempt. A retry has none, since time has passed. */
  requestedVersion(type: ResourceType): string | undefined {
    const { triggers, floor } = this.lease;
    const id = resourceId(type);
    let newest = id === resourceId(this.runtime.controller.for) ? floor : undefined;
    for (const { seen } of triggers) {
      const version = seen?.[id];
      if (version === undefined) continue;
      if (newest === undefined || (compareResourceVersions(version, newest) ?? 0) > 0) {
        newest = version;
      }
    }
    return newest;
  }

  /** @throws the reason of the abort; AttemptCancelledError if the lease has expired while the process was suspended */
  assertHeld(): void {
    this.lease.checkExpiry();
    this.signal.throwIfAborted();
  }

  abort(reason: Error): void {
    this.#abort.abort(reason);
  }

  /** Ends whatever the handler left running: a later write would be one of a zombie (P8). */
  end(): void {
    this.#isOpen = false;
    if (!this.signal.aborted) this.#abort.abort(ENDED);
  }

  /** True if the attempt ended without being aborted. */
  get hasEnded(): boolean {
    return this.signal.reason === ENDED;
  }

  #bindClient(): KubeClient {
    const { client, controller, cache } = this.runtime;
    const { trace } = this;
    const of = this.#of;
    const span = this.#span;
    return client.scoped({
      signal: this.signal,
      priority: this.priority,
      urgency: this.urgency,
      isRunning: () => trace.calls.count > 0,
      ...(of === undefined
        ? {}
        : {
            cluster: this.lease.key.cluster,
            checkBody: (body) => assertNotOwner(of.object, body),
          }),
      onSend: (call) => {
        this.lease.checkExpiry();
        return span?.startCall(call, client.server) ?? UNOBSERVED;
      },
      observe: trace.noteCall,
      onConflict: (conflict) => {
        trace.noteConflict(conflict);
        cache.noteConflict(conflict.ref);
      },
      fieldManager: `konverge/${controller.name}`,
      ...defined({
        plan: this.plan?.in(this.lease.key.cluster),
        hold: (this.tape ?? this.hold)?.in(this.lease.key.cluster),
        discovery: this.tape?.discovery,
      }),
    });
  }
}
