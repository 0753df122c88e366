import type { InProcessServer } from "@konverge/apiserver";
import { invalidConfig, type ErrorIssue } from "@konverge/core";
import { differencesOf } from "./end-state.ts";
import {
  describeFault,
  drawFaults,
  FAULT_KINDS,
  type FaultKind,
  type SimulatedFault,
} from "./fault.ts";
import { prepareServer, runScenario, type RunLimits, type ScenarioRun } from "./run-scenario.ts";
import type { Scenario, SimulatedConfig } from "./scenario.ts";
import type { StoryLine, Violation } from "./simulated-run.ts";
import { useVirtualGlobals } from "./virtual-globals.ts";

/** The options of {@link simulate}. */
export interface SimulateOptions {
  /** Number of runs with faults. Default 200. */
  readonly seeds?: number;
  /** The first seed. To repeat a failure, pass its seed with `seeds: 1`. Default 1. */
  readonly firstSeed?: number;
  /** The kinds of faults. Default: all. */
  readonly faults?: readonly FaultKind[];
}

/** A run that failed. */
export interface SimulationFailure {
  /** The seed of the run; 0 for the run without faults. */
  readonly seed: number;
  /** The checks that failed. */
  readonly violations: readonly Violation[];
  /** The fewest faults of the seed that are enough to fail. */
  readonly faults: readonly SimulatedFault[];
  /** The events of the run in order, as text: faults, calls, attempts, changes of users. */
  readonly story: string;
}

/** The result of {@link simulate}. */
export interface SimulationReport {
  /** Runs with faults. */
  readonly runs: number;
  /** Attempts of all runs, also of those without faults. */
  readonly attempts: number;
  /** API calls of the handlers in all runs. */
  readonly calls: number;
  /** The first failure, with the fewest faults; undefined if all runs succeeded. */
  readonly failure: SimulationFailure | undefined;
}

const DEFAULT_SEEDS = 200;
const OPTIONS: ReadonlySet<string> = new Set(["seeds", "firstSeed", "faults"]);
const SCENARIO: ReadonlySet<string> = new Set([
  "run",
  "reactions",
  "always",
  "finally",
  "periodic",
  "compare",
  "compareRun",
]);

/**
 * Runs a scenario many times with the engine's own code, virtual time, and an API server and a queue in this process. Each
 * run has different faults, which follow from its seed: crashes, failed calls, late and missed events, two workers that run the
 * same key. Checks that the controllers come to rest with the result of a run without faults, and the invariants of the scenario.
 *
 * @param config a configuration, or a function that returns one per run, for controllers with state of their own
 *
 * @example
 * const { failure } = await simulate({ controllers: [nodePool] }, {
 *   async run(user) {
 *     await user.apply(NodePool, { name: "blue", spec: { replicas: 2 } });
 *     await user.settled();
 *   },
 * });
 * assert.equal(failure, undefined, failure?.story);
 *
 * @throws KonvergeError `invalid_config` for options that do not exist or have no valid value
 */
export async function simulate(
  config: SimulatedConfig | (() => SimulatedConfig),
  scenario: Scenario,
  options: SimulateOptions = {},
): Promise<SimulationReport> {
  const make = typeof config === "function" ? config : () => config;
  const first = make();
  checkOptions(first, scenario, options);
  const endVirtual = useVirtualGlobals();
  try {
    const server = await prepareServer(first);
    return await new Simulation(server, { config: make, scenario }).run(options);
  } finally {
    endVirtual();
  }
}

interface Subject {
  readonly config: () => SimulatedConfig;
  readonly scenario: Scenario;
}

class Simulation {
  readonly #server: InProcessServer;
  readonly #subject: Subject;
  #limits: RunLimits = { attempts: 500 };
  #attempts = 0;
  #calls = 0;

  constructor(server: InProcessServer, subject: Subject) {
    this.#server = server;
    this.#subject = subject;
  }

  async run({
    seeds = DEFAULT_SEEDS,
    firstSeed = 1,
    faults,
  }: SimulateOptions): Promise<SimulationReport> {
    const calm = await this.#play([]);
    if (calm.run.violations.length === 0) {
      const again = await this.#play([]);
      const isSame = storyOf(calm.run.story) === storyOf(again.run.story);
      if (!isSame) calm.run.violate("runs repeat", describeDifference(calm, again));
    }
    if (calm.run.violations.length > 0) return this.#report(0, failureOf(0, [], calm));
    this.#limits = { attempts: 1_000 + 20 * calm.run.attempts };
    const range = { calls: calm.run.calls, events: calm.run.events };
    for (let seed = firstSeed; seed < firstSeed + seeds; seed++) {
      const drawn = drawFaults(seed, range, faults);
      const found = await this.#fails(drawn, calm);
      if (found === undefined) continue;
      const failure = await this.#shrink(seed, { drawn, found, calm });
      return this.#report(seed - firstSeed + 1, failure);
    }
    return this.#report(seeds, undefined);
  }

  async #play(faults: readonly SimulatedFault[]): Promise<ScenarioRun> {
    const played = await runScenario(
      this.#server,
      { ...this.#subject, limits: this.#limits },
      faults,
    );
    this.#attempts += played.run.attempts;
    this.#calls += played.run.calls;
    return played;
  }

  /** Plays faults. Returns the run if it fails. */
  async #fails(
    faults: readonly SimulatedFault[],
    calm: ScenarioRun,
  ): Promise<ScenarioRun | undefined> {
    const played = await this.#play(faults);
    const { run, endState, dead } = played;
    if (run.violations.length === 0) {
      for (const key of dead.filter((one) => !calm.dead.includes(one))) {
        run.violate(
          "no dead letters",
          `${key} is dead-lettered, but not in the run without faults`,
        );
      }
      for (const difference of differencesOf(calm.endState, endState)) {
        run.violate("the result without faults", difference);
      }
    }
    return run.violations.length === 0 ? undefined : played;
  }

  /** Omits faults while the same check still fails. */
  async #shrink(
    seed: number,
    {
      drawn,
      found,
      calm,
    }: {
      readonly drawn: readonly SimulatedFault[];
      readonly found: ScenarioRun;
      readonly calm: ScenarioRun;
    },
  ): Promise<SimulationFailure> {
    const check = found.run.violations[0]?.check;
    let faults = drawn;
    let last = found;
    for (let index = 0; index < faults.length;) {
      const fewer = faults.toSpliced(index, 1);
      const played = await this.#fails(fewer, calm);
      if (played?.run.violations.some((one) => one.check === check) === true) {
        faults = fewer;
        last = played;
      } else index += 1;
    }
    const repeated = await this.#fails(faults, calm);
    if (repeated === undefined || storyOf(repeated.run.story) !== storyOf(last.run.story)) {
      last.run.violate("runs repeat", "the same faults resulted in a different story");
    }
    return failureOf(seed, faults, last);
  }

  #report(runs: number, failure: SimulationFailure | undefined): SimulationReport {
    return { runs, attempts: this.#attempts, calls: this.#calls, failure };
  }
}

function failureOf(
  seed: number,
  faults: readonly SimulatedFault[],
  { run: { violations, story } }: ScenarioRun,
): SimulationFailure {
  const title = seed === 0 ? "fails without faults" : `fails with seed ${seed}`;
  const lines = [
    `The simulation ${title}.`,
    ...violations.map(({ check, detail }) => `  ${check}: ${detail}`),
    "Faults:",
    ...(faults.length === 0 ? ["  none"] : faults.map((fault) => `  ${describeFault(fault)}`)),
    "Story:",
    storyOf(story),
  ];
  return { seed, violations, faults, story: lines.join("\n") };
}

function storyOf(story: readonly StoryLine[]): string {
  return story
    .map(({ atMs, actor, text }) => {
      const time = (atMs / 1_000).toFixed(3).padStart(10);
      return `${time}  ${actor.padEnd(9)} ${text}`;
    })
    .join("\n");
}

function describeDifference(one: ScenarioRun, other: ScenarioRun): string {
  const [left, right] = [one, other].map(({ run }) => storyOf(run.story).split("\n"));
  const at = left?.findIndex((line, index) => line !== right?.[index]) ?? 0;
  return `two runs without faults differ: "${left?.[at]?.trim() ?? "the end"}" and "${right?.[at]?.trim() ?? "the end"}"; handlers must not depend on state that outlives a run: pass a function that returns the configuration`;
}

function checkOptions(config: SimulatedConfig, scenario: Scenario, options: SimulateOptions): void {
  const issues: ErrorIssue[] = [];
  const refuse = (name: string, detail: string) =>
    issues.push({ pointer: `/${name}`, detail: `${name}: ${detail}` });
  for (const name of Object.keys(options)) {
    if (!OPTIONS.has(name))
      refuse(name, `is not an option; valid options: ${[...OPTIONS].join(", ")}`);
  }
  for (const name of Object.keys(scenario)) {
    if (!SCENARIO.has(name)) {
      refuse(name, `is not a field of a scenario; valid fields: ${[...SCENARIO].join(", ")}`);
    }
  }
  if (typeof scenario.run !== "function") refuse("run", "must be a function");
  const { seeds = 1, firstSeed = 1, faults = FAULT_KINDS } = options;
  if (!(Number.isSafeInteger(seeds) && seeds >= 0)) {
    refuse("seeds", `must be an integer >= 0 (got ${seeds})`);
  }
  if (!(Number.isSafeInteger(firstSeed) && firstSeed >= 1)) {
    refuse("firstSeed", `must be an integer >= 1 (got ${firstSeed})`);
  }
  const unknown = faults.filter((kind) => !FAULT_KINDS.includes(kind));
  if (unknown.length > 0 || faults.length === 0) {
    refuse("faults", `must be a list of ${FAULT_KINDS.join(", ")} (got ${faults.join(", ")})`);
  }
  for (const { name, mode, approval } of config.controllers ?? []) {
    const unable =
      mode === "observe"
        ? 'has the mode "observe", so it writes nothing; omit the controller, or define it without mode'
        : approval && "has approval, and no users approve its plans; define it without approval";
    if (unable !== undefined) refuse("controllers", `"${name}" ${unable}`);
  }
  const { schedules = [] } = config as { readonly schedules?: readonly unknown[] };
  if (schedules.length > 0) {
    refuse("schedules", "are not simulated; omit them, and test them with testWorkflow");
  }
  if (issues.length > 0) throw invalidConfig(issues, "the options of simulate are");
}
