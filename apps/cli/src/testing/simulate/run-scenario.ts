import { createInProcessServer, type InProcessServer } from "@konverge/apiserver";
import { deepFreeze, ensureError, resourceId, type JsonObject } from "@konverge/core";
import { isKubeApiError } from "@konverge/kube";
import type { AnyWorkflow } from "@konverge/workflow";
import { resourcesOf } from "../../config/crds-of.ts";
import { installCrds } from "../../config/install-crds.ts";
import { endStateOf, orphansOf } from "./end-state.ts";
import { checkReplays, checkRuns, runStatesOf } from "./run-state.ts";
import type { SimulatedFault } from "./fault.ts";
import {
  objectsOf,
  openUser,
  Settling,
  type Scenario,
  type SimulatedConfig,
  type SimulatedUser,
} from "./scenario.ts";
import { nameOf, shortKey, SimulatedRun } from "./simulated-run.ts";
import { openClient, SimulatedWorkers } from "./simulated-workers.ts";
import { SimulatedWire } from "./simulated-wire.ts";
import { places } from "./virtual-clock.ts";

export interface ScenarioRun {
  readonly run: SimulatedRun;
  readonly endState: ReturnType<typeof endStateOf>;
  /** Keys that were dead-lettered at the end. */
  readonly dead: readonly string[];
}

export interface RunLimits {
  /** Attempts after which a run counts as endless. */
  readonly attempts: number;
}

/** Time that the controllers have for the end state once the faults have ceased, in virtual ms. */
const HORIZON_MS = 7_200_000;
/** Planned work after which a run counts as endless. */
const MAX_STEPS = 300_000;

/** Creates a server with the CRDs, which the runs start from. */
export async function prepareServer(config: SimulatedConfig): Promise<InProcessServer> {
  const run = new SimulatedRun(() => createInProcessServer(), []);
  const actor = { name: "kubectl" };
  const client = openClient(new SimulatedWire({ run, actor }), "kubectl", run.clock.random);
  const install = async () =>
    await installCrds(client, [
      ...resourcesOf({ controllers: config.controllers ?? [] }),
      ...(config.resources ?? []),
    ]);
  await drive(run, places.run(run.place(actor), install));
  return run.server;
}

/** Drives the clock until a promise settles. */
async function drive<T>(run: SimulatedRun, work: Promise<T>): Promise<T> {
  let isOver = false;
  const settled = work.finally(() => {
    isOver = true;
  });
  settled.catch(() => undefined);
  for (;;) {
    await run.clock.settle();
    if (isOver) return await settled;
    if (!run.clock.step())
      throw new Error("the simulation cannot continue: it waits for an operation outside of it");
  }
}

/** Runs a scenario once, with faults, and checks its end. */
export async function runScenario(
  server: InProcessServer,
  {
    config,
    scenario,
    limits,
  }: {
    readonly config: () => SimulatedConfig;
    readonly scenario: Scenario;
    readonly limits: RunLimits;
  },
  faults: readonly SimulatedFault[],
): Promise<ScenarioRun> {
  const run = new SimulatedRun(
    (of) => createInProcessServer({ from: server, collect: (work) => of.collect(work) }),
    faults,
  );
  run.isPeriodic = scenario.periodic === true;
  const settling = new Settling(run);
  const user = openUser(run, "user", settling);
  observe(run, scenario, openUser(run, "cluster", settling));
  const { controllers = [], use = [], workflows = [] } = places.run(run.cloud, config);
  const workers = new SimulatedWorkers({ run, controllers, use, workflows });
  if (scenario.always !== undefined) {
    run.onRunChange.add(() => checkInvariants(run, scenario.always, "after a change of a run"));
  }
  workers.start();
  const play = new Driver(run, settling, limits);
  if (await play.until(places.run(run.place({ name: "user" }), () => scenario.run(user)))) {
    run.isFaulty = false;
    run.note("check", "the scenario has ended; no more faults");
    if (await play.rest(HORIZON_MS)) await checkEnd(play, scenario, workers);
  }
  const dead = run.queues.keys().flatMap(({ id, isDead }) => (isDead ? [shortKey(id)] : []));
  const endState = comparedState(run, scenario, workflows);
  checkRuns(run, workflows);
  if (run.violations.length === 0 && workflows.length > 0) {
    const checker = run.place({ name: "check" });
    await play.until(places.run(checker, () => checkReplays(run, workflows)));
  }
  return { run, endState, dead };
}

/** The objects at the end of a run. An error of `compare` fails the run. */
function comparedState(
  run: SimulatedRun,
  { compare, compareRun }: Scenario,
  workflows: readonly AnyWorkflow[],
): ScenarioRun["endState"] {
  try {
    return new Map([...endStateOf(run, compare), ...runStatesOf(run, workflows, compareRun)]);
  } catch (error) {
    run.violate("compare succeeds", ensureError(error).message);
    return new Map();
  }
}

/** Checks the state at rest, and that another reconcile of all objects changes nothing. */
async function checkEnd(
  play: Driver,
  scenario: Scenario,
  workers: SimulatedWorkers,
): Promise<void> {
  const { run } = play;
  checkInvariants(run, scenario.finally, "at rest");
  for (const orphan of orphansOf(run))
    run.violate("no orphans", `${orphan} has an owner that does not exist`);
  const { writes } = run;
  const before = endStateOf(run, undefined);
  run.note("check", "all objects are requested again");
  workers.requestAll();
  if (!(await play.rest(HORIZON_MS))) return;
  if (run.writes === writes) return;
  const after = endStateOf(run, undefined);
  const isSame = JSON.stringify([...before]) === JSON.stringify([...after]);
  const effect = isSame ? "only times, versions or uids changed" : "objects changed";
  run.violate(
    "no further writes",
    `another reconcile of objects at rest wrote ${run.writes - writes} times; ${effect}`,
  );
}

function checkInvariants(run: SimulatedRun, invariants: Scenario["always"], when: string): void {
  for (const [name, holds] of Object.entries(invariants ?? {})) {
    try {
      const why = holds(objectsOf(run));
      if (typeof why === "string") run.violate(name, `${why} (${when})`);
    } catch (error) {
      run.violate(name, `the invariant threw: ${ensureError(error).message} (${when})`);
    }
  }
}

/** Follows the changes of objects: the story, the invariants and the reactions of the cluster. */
function observe(run: SimulatedRun, scenario: Scenario, cluster: SimulatedUser): void {
  run.server.onChange(({ resource, type, object, previous }) => {
    run.noteChange(resource);
    if (resource === "leases.coordination.k8s.io") return;
    const generationOf = (of: JsonObject | undefined) =>
      (of?.["metadata"] as JsonObject | undefined)?.["generation"];
    const isNew = previous === undefined || generationOf(object) !== generationOf(previous);
    checkInvariants(run, scenario.always, `after a change of ${resource} ${nameOf(object)}`);
    if (type === "DELETED" || !isNew) return;
    for (const reaction of scenario.reactions ?? []) {
      if (resourceId(reaction.type) !== resource) continue;
      run.clock.after(run.cloud, 5, () => {
        void react(run, async () => {
          await reaction.change(deepFreeze(object), cluster);
        });
      });
    }
  });
}

/** The object of a reaction may have been deleted or changed. Any other error is a bug in the scenario. */
async function react(run: SimulatedRun, change: () => Promise<unknown>): Promise<void> {
  try {
    await change();
  } catch (error) {
    const { message } = ensureError(error);
    run.note("cluster", `reaction failed: ${message}`);
    const isExpected = isKubeApiError(error) && (error.status === 404 || error.status === 409);
    if (!isExpected) run.violate("reactions succeed", message);
  }
}

/** Lets virtual time pass. */
class Driver {
  readonly run: SimulatedRun;
  readonly #settling: Settling;
  readonly #limits: RunLimits;
  #steps = 0;

  constructor(run: SimulatedRun, settling: Settling, limits: RunLimits) {
    this.run = run;
    this.#settling = settling;
    this.#limits = limits;
  }

  /** Until the scenario has ended. False if the run has ended with a violation. */
  async until(work: Promise<void>): Promise<boolean> {
    let isOver = false;
    const play = async () => {
      try {
        await work;
      } catch (error) {
        this.run.violate("the scenario succeeds", ensureError(error).message);
      } finally {
        isOver = true;
      }
    };
    const settled = play();
    while (!isOver) {
      await this.run.clock.settle();
      // oxlint-disable-next-line typescript/no-unnecessary-condition -- set by the scenario meanwhile
      if (isOver) break;
      if (this.#settling.check()) continue;
      if (!this.#step()) return false;
    }
    await settled;
    return this.run.violations.length === 0;
  }

  /** Until the controllers are at rest. False if they do not come to rest. */
  async rest(withinMs: number): Promise<boolean> {
    const { run } = this;
    const untilMs = run.clock.nowMs + withinMs;
    for (;;) {
      await run.clock.settle();
      if (run.violations.length > 0) return false;
      if (run.isAtRest) return true;
      if (run.clock.nowMs > untilMs) {
        run.violate("the controllers come to rest", describeUnrest(run));
        return false;
      }
      if (!this.#step()) return false;
    }
  }

  #step(): boolean {
    const { run } = this;
    this.#steps += 1;
    if (this.#steps > MAX_STEPS || run.attempts > this.#limits.attempts) {
      run.violate("the controllers come to rest", describeUnrest(run));
      return false;
    }
    try {
      if (run.clock.step()) return run.violations.length === 0;
    } catch (error) {
      run.violate("no uncaught errors", `a callback threw: ${ensureError(error).message}`);
      return false;
    }
    run.violate(
      "the scenario ends",
      "nothing is left to run; the scenario or a handler awaits something outside of the simulation",
    );
    return false;
  }
}

function describeUnrest(run: SimulatedRun): string {
  const restless = run.queues.keys().filter(({ isAtRest, id }) => {
    return !isAtRest || (run.activity.get(id)?.quiet ?? 0) < 2;
  });
  const each = restless.map(({ id, attempts }) => {
    const { lastOutcome = "none", lastError = "" } = run.activity.get(id) ?? {};
    const error = lastError === "" ? "" : `: ${lastError}`;
    return `${shortKey(id)} (${attempts} attempts in a row, the last: ${lastOutcome}${error})`;
  });
  const text = each.length === 0 ? [...run.pending].join(", ") : each.join("; ");
  return `after ${run.attempts} attempts, still not at rest: ${text}`;
}
