import { createInterface } from "node:readline";
import { open } from "node:fs/promises";
import { parseArgs } from "node:util";

/** What a workflow engine under measurement does with the three workflows of `workflow-peers`. */
interface WorkflowEngine {
  /** Starts a run of five empty steps in sequence. The returned function resolves when its end is recorded. */
  startFive(id: string): Promise<() => Promise<void>>;
  /** Starts a run that calls `prepared` in a step, awaits a signal, and calls `approved` in the next step. */
  startApproval(id: string): Promise<() => Promise<void>>;
  approve(id: string): Promise<void>;
  /** Starts a run of one step, whose body is `stall`. */
  startStall(id: string): Promise<void>;
  close(): Promise<void>;
}

/** The bodies of the steps, which every engine runs in the measured process. */
interface Bodies {
  five(n: number): Promise<number>;
  prepared(id: string): Promise<void>;
  approved(id: string): Promise<void>;
  stall(id: string): Promise<void>;
}

export type OpenEngine = (bodies: Bodies) => Promise<WorkflowEngine>;

/** A measured value, printed as a line of JSON. */
export interface PeerValue {
  readonly metric: PeerMetric;
  readonly value: number;
}

type PeerMetric =
  | "steps per second"
  | "start to end, p50"
  | "start to end, p99"
  | "signal to next step, p50"
  | "signal to next step, p99"
  | "parked"
  | "parked runs resumed and ended";

const WIDTH = 50;
const WARM_UP = 50;

/**
 * Implements a program under measurement: `measure` prints values and ends; `stall` starts a run for each line of stdin
 * and prints `stalled ID` or `resumed ID` for each begin of its body.
 */
export async function servePeer(openEngine: OpenEngine): Promise<void> {
  const { positionals, values } = parseArgs({
    allowPositionals: true,
    options: {
      runs: { type: "string", default: "500" },
      singles: { type: "string", default: "200" },
      parked: { type: "string", default: "500" },
    },
  });
  const seen = new Map<string, () => void>();
  const noteApproval = async (id: string): Promise<void> => seen.get(id)?.();
  const engine = await openEngine({
    five: async (n) => n,
    prepared: noteApproval,
    approved: noteApproval,
    stall,
  });
  if (positionals[0] === "stall") {
    console.log("ready");
    for await (const id of createInterface({ input: process.stdin })) await engine.startStall(id);
    process.exit(0);
  }
  const print = (metric: PeerMetric, value: number): void =>
    console.log(JSON.stringify({ metric, value } satisfies PeerValue));
  await measureSteps(engine, Number(values.runs), print);
  await measureSingles(engine, Number(values.singles), seen, print);
  await measureParked(engine, Number(values.parked), seen, print);
  await engine.close();
  process.exit(0);
}

type Print = (metric: PeerMetric, value: number) => void;

async function measureSteps(engine: WorkflowEngine, runs: number, print: Print): Promise<void> {
  const run = async (id: string): Promise<void> => await (await engine.startFive(id))();
  await inLanes(WARM_UP, (n) => run(`warm-${n}`));
  const startedMs = performance.now();
  await inLanes(runs, (n) => run(`five-${n}`));
  print("steps per second", (runs * 5 * 1_000) / (performance.now() - startedMs));
}

async function measureSingles(
  engine: WorkflowEngine,
  count: number,
  seen: Map<string, () => void>,
  print: Print,
): Promise<void> {
  const whole: number[] = [];
  const woken: number[] = [];
  for (let n = 0; n < count; n++) {
    const startedMs = performance.now();
    await (
      await engine.startFive(`single-${n}`)
    )();
    whole.push(performance.now() - startedMs);
  }
  for (let n = 0; n < count; n++) {
    const id = `approval-${n}`;
    const prepared = once(seen, id);
    const ended = await engine.startApproval(id);
    await prepared;
    // Until the run waits; no engine tells when.
    await new Promise((resolve) => setTimeout(resolve, 25));
    const approved = once(seen, id);
    const sentMs = performance.now();
    await engine.approve(id);
    await approved;
    woken.push(performance.now() - sentMs);
    await ended();
  }
  print("start to end, p50", quantile(whole, 0.5));
  print("start to end, p99", quantile(whole, 0.99));
  print("signal to next step, p50", quantile(woken, 0.5));
  print("signal to next step, p99", quantile(woken, 0.99));
}

async function measureParked(
  engine: WorkflowEngine,
  count: number,
  seen: Map<string, () => void>,
  print: Print,
): Promise<void> {
  const ends: (() => Promise<void>)[] = [];
  await inLanes(count, async (n) => {
    const prepared = once(seen, `parked-${n}`);
    ends[n] = await engine.startApproval(`parked-${n}`);
    await prepared;
  });
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  print("parked", count);
  // The parent reads the memory of the servers now.
  await new Promise<void>((resolve) => process.stdin.once("data", () => resolve()));
  process.stdin.pause();
  const startedMs = performance.now();
  await inLanes(count, async (n) => {
    await engine.approve(`parked-${n}`);
    await ends[n]?.();
  });
  print("parked runs resumed and ended", (count * 1_000) / (performance.now() - startedMs));
}

/** The first call for an id never ends; a later one, after the death of the first process, returns. */
async function stall(id: string): Promise<void> {
  const isFirst = await open(`${process.env["STALL_FOLDER"]}/${id}`, "wx").then(
    (file) => file.close().then(() => true),
    () => false,
  );
  console.log(`${isFirst ? "stalled" : "resumed"} ${id}`);
  if (isFirst) await new Promise(() => undefined);
}

function once(seen: Map<string, () => void>, id: string): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  seen.set(id, resolve);
  return promise;
}

async function inLanes(count: number, run: (n: number) => Promise<unknown>): Promise<void> {
  let next = 0;
  await Promise.all(
    Array.from({ length: WIDTH }, async () => {
      while (next < count) await run(next++);
    }),
  );
}

function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN;
}
