import { createKubeClient, type KubeClient, type KubeCredentials } from "@konverge/kube";
import {
  NO_LANES,
  startEngine,
  type Controller,
  type Engine,
  type Log,
  type LoopWatch,
  type Middleware,
} from "@konverge/engine";
import type { AttemptLease, WorkQueue } from "@konverge/queue";
import type { MemoryProcess } from "@konverge/queue/memory";
import type { Metrics } from "@konverge/telemetry";
import { createRunStarter } from "@konverge/worker";
import type { AnyWorkflow } from "@konverge/workflow";
import { perturbedCall } from "./perturbed-call.ts";
import type { SimulatedRun } from "./simulated-run.ts";
import { openProcessRuns } from "./simulated-runs.ts";
import { SimulatedWire, type ActorFaults } from "./simulated-wire.ts";
import { places, type Actor, type Place } from "./virtual-clock.ts";

const LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
/** Leadership does not change by time, but by the faults of a run. */
const ELECTION = {
  leaseDurationMs: 36_000_000,
  renewDeadlineMs: 30_000_000,
  retryPeriodMs: 7_200_000,
};
/** Time after which others take over from a suspended worker, in ms. */
const TAKEN_OVER_MS = 10_500;
const NO_LOOP: LoopWatch = { began: () => ({ ended: () => 0 }), stop: () => undefined };

const CREDENTIALS: KubeCredentials = {
  server: "http://simulated",
  context: "simulation",
  authorize: async () => AUTHORIZATION,
  forget: () => undefined,
};
const AUTHORIZATION = { headers: {}, tls: {} };
const PERMIT = { waitedMs: 0, settle: () => undefined };

/** Opens a client of an actor. */
export function openClient(wire: SimulatedWire, name: string, random: () => number): KubeClient {
  return createKubeClient({
    credentials: CREDENTIALS,
    gate: { admit: async () => PERMIT },
    userAgent: name,
    fieldManager: name,
    random,
    dispatcher: wire,
  });
}

/** Metrics without a reader. */
const NO_METRICS: Metrics = new Proxy({} as Metrics, {
  get: () => () => () => undefined,
});

export interface SimulatedWorkersOptions {
  readonly run: SimulatedRun;
  readonly controllers: readonly Controller[];
  readonly use: readonly Middleware[];
  readonly workflows: readonly AnyWorkflow[];
}

/** The workers of a run, of which at least one lives or will start. */
export class SimulatedWorkers {
  readonly #options: SimulatedWorkersOptions;
  readonly #engines = new Map<Actor, Engine>();
  #started = 0;

  constructor(options: SimulatedWorkersOptions) {
    this.#options = options;
  }

  /** Starts a worker that becomes the leader. */
  start(): void {
    const { run, controllers, use, workflows } = this.#options;
    this.#started += 1;
    const actor: Actor = { name: `worker-${this.#started}` };
    const place = run.place(actor);
    const starting = `${actor.name} starts`;
    run.pending.add(starting);
    run.note(actor.name, "starts");
    const wire = new SimulatedWire({ run, actor, faults: this.#faults });
    const begin = async () => {
      await this.#releaseLeadership();
      const client = openClient(wire, "konverge", run.clock.random);
      const runs = openProcessRuns(run, place, {
        client,
        queueOf: (name) => run.queues.open(name, processOf(run, place)),
        faults: this.#faults,
      });
      const engine = await startEngine({
        controllers,
        use: [simulateExternals(run, place, this.#faults), ...use],
        client,
        queueFor: ({ name }): WorkQueue => run.queues.open(name, processOf(run, place)),
        lanes: NO_LANES,
        workerId: actor.name,
        log: logOf(run, actor),
        metrics: NO_METRICS,
        loop: NO_LOOP,
        election: ELECTION,
        leaseNamespace: "default",
        runs: () => createRunStarter(runs.calls),
      });
      runs.work(workflows);
      this.#engines.set(actor, engine);
      run.pending.delete(starting);
    };
    run.clock.after(place, 1, () => {
      begin().catch((error: unknown) => {
        run.pending.delete(starting);
        run.violate("the worker starts", String(error));
      });
    });
  }

  /** Requests all objects of all controllers, as at a resync. */
  requestAll(): void {
    const { controllers } = this.#options;
    for (const [actor, engine] of this.#engines) {
      if (actor.deadAtMs !== undefined) continue;
      for (const { name } of controllers) engine.requestAgain(name, "resync");
    }
  }

  readonly #faults = {
    crash: (actor: Actor, downMs: number): void => {
      if (actor.deadAtMs !== undefined) return;
      const { run } = this.#options;
      actor.deadAtMs = run.clock.nowMs;
      run.note(actor.name, "crashes");
      for (const what of run.pending) {
        if (what.startsWith(`${actor.name} `)) run.pending.delete(what);
      }
      this.#engines.delete(actor);
      this.#startLater(downMs);
    },
    suspend: (actor: Actor, ms: number): void => {
      const { run } = this.#options;
      const fromMs = run.clock.nowMs;
      actor.suspended = { fromMs, untilMs: fromMs + ms };
      run.note(actor.name, "is suspended");
      const resuming = `${actor.name} resumes`;
      run.pending.add(resuming);
      run.clock.after(run.cloud, ms, () => {
        run.pending.delete(resuming);
        run.note(actor.name, "resumes");
      });
      this.#startLater(TAKEN_OVER_MS);
    },
  };

  #startLater(ms: number): void {
    const { run } = this.#options;
    run.clock.after(run.cloud, ms, () => this.start());
  }

  /** As if the Leases of earlier leaders had expired. */
  async #releaseLeadership(): Promise<void> {
    const { run } = this.#options;
    const remove = { method: "DELETE", path: LEASES, headers: {}, body: "" };
    await run.land(run.cloud, () => run.server.request(remove));
  }
}

function processOf(run: SimulatedRun, place: Place): MemoryProcess {
  const { actor } = place;
  return {
    name: actor.name,
    silentSinceMs() {
      const { deadAtMs, suspended } = actor;
      if (deadAtMs !== undefined) return deadAtMs;
      if (suspended === undefined || suspended.untilMs <= run.clock.nowMs) return undefined;
      return suspended.fromMs;
    },
    after: (ms, call) => void run.clock.after(place, ms, call),
    attempt: (attempt: AttemptLease, call: () => Promise<void>) => {
      void places.run({ ...place, attempt }, call);
    },
  };
}

/** Shows calls of `external` in the story, and applies the faults of calls to them. */
function simulateExternals(run: SimulatedRun, place: Place, faults: ActorFaults): Middleware {
  return async (context, next) => {
    const { external } = context;
    const simulated = async (
      name: string,
      call: () => unknown,
      options?: { readonly planned: unknown },
    ) =>
      await perturbedCall(run, place, faults, {
        what: `external ${name}`,
        execute: () => external(name, call, options as { planned: unknown }),
      });
    Object.assign(context, { external: simulated });
    return await next();
  };
}

/** The log lines of handlers are part of the story; those of the engine are not. */
function logOf(run: SimulatedRun, { name }: Actor): Log {
  const write = (level: string) => (_fields: object, message: string) => {
    if (level === "error") run.note(name, `log: ${message}`);
  };
  const log: Log = {
    debug: write("debug"),
    info: write("info"),
    warn: write("warn"),
    error: write("error"),
    child: () => log,
  };
  return log;
}
