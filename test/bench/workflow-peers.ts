import { execFile, spawn, type ChildProcessByStdio } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { figureOf, isWanted, type BenchOptions, type Figure } from "./measure.ts";
import type { PeerValue } from "./peer-scenarios.ts";
import {
  freePort,
  memoryMiB,
  startPostgres,
  startRedisServer,
  startRestate,
  startTemporal,
  type EngineServer,
} from "./workflow-servers.ts";

const execute = promisify(execFile);
const SUITE = "workflow-peers";
const PEERS = fileURLToPath(new URL("peers/workflows", import.meta.url));
const OURS = fileURLToPath(new URL("peer-konverge.ts", import.meta.url));
const KILLS = 3;
const ROUNDS = 3;
const PARKED = 2_000;
const LONG_PARKED = 10_000;
/** A measurement that takes longer is not repeated, in ms. */
const SLOW_MS = 120_000;

interface Arm {
  /** With the durability of a recorded step. */
  readonly name: string;
  readonly program: string;
  readonly start: () => Promise<EngineServer>;
}

/** The values of one arm, one per round, by metric. */
type Values = ReadonlyMap<string, readonly number[]>;

/** Units of the metrics, and whether less is better. */
const METRICS: Readonly<Record<string, { readonly unit: string; readonly isCost: boolean }>> = {
  "steps per second": { unit: "1/s", isCost: false },
  "start to end, p50": { unit: "ms", isCost: true },
  "start to end, p99": { unit: "ms", isCost: true },
  "signal to next step, p50": { unit: "ms", isCost: true },
  "signal to next step, p99": { unit: "ms", isCost: true },
  "server memory per parked run": { unit: "KiB", isCost: true },
  "parked runs resumed and ended": { unit: "1/s", isCost: false },
  "kill -9 to the repeated step": { unit: "ms", isCost: true },
};

/** Measures the same three workflows with Konverge, Restate, DBOS and Temporal, one server and one worker process each. */
export async function benchWorkflowPeers({
  log,
  long,
  arms: wanted,
}: BenchOptions): Promise<Figure[]> {
  await installPeers(log);
  const [own, ...others] = armsOf(log);
  const arms = [own, ...others.filter(({ name }) => isWanted(name, wanted))];
  const results = new Map<string, Map<string, number[]>>();
  const slow = new Set<Arm>();
  // In turn, so that a change of the machine's speed reaches all.
  for (let round = 0; round < ROUNDS; round++) {
    for (const each of arms) {
      if (slow.has(each)) continue;
      const beganMs = performance.now();
      log(`${SUITE}: ${each.name}, round ${round + 1} of ${ROUNDS}`);
      try {
        const values = results.get(each.name) ?? new Map<string, number[]>();
        for (const [metric, value] of await measure(each, long ? LONG_PARKED : PARKED)) {
          values.set(metric, [...(values.get(metric) ?? []), value]);
        }
        results.set(each.name, values);
        if (performance.now() - beganMs > SLOW_MS) slow.add(each);
      } catch (error) {
        log(`without ${each.name}: ${error instanceof Error ? error.message : String(error)}`);
      }
    }
  }
  const ours = results.get(own.name) ?? new Map<string, number[]>();
  return [...results]
    .filter(([name]) => name !== own.name)
    .flatMap(([name, values]) => compare(ours, name, values));
}

function armsOf(log: (line: string) => void): readonly [Arm, ...Arm[]] {
  const peer = (file: string) => `${PEERS}/${file}`;
  return [
    {
      name: "Konverge, Redis AOF everysec",
      program: OURS,
      start: () => startRedisServer("everysec"),
    },
    { name: "Konverge, Redis AOF always", program: OURS, start: () => startRedisServer("always") },
    { name: "Restate, defaults", program: peer("restate.js"), start: () => startRestate(PEERS) },
    { name: "DBOS, Postgres defaults", program: peer("dbos.js"), start: startPostgres },
    {
      name: "Temporal, SQLite in memory",
      program: peer("temporal.js"),
      start: () => startTemporal(log),
    },
  ];
}

function compare(ours: Values, name: string, theirs: Values): Figure[] {
  return Object.entries(METRICS).flatMap(([metric, { unit, isCost }]) => {
    const [own, values] = [ours.get(metric), theirs.get(metric)];
    if (own === undefined || values === undefined) return [];
    const what = { suite: SUITE, case: "the same workflows", metric, unit };
    const goalIs = isCost ? "most" : "least";
    return [figureOf({ ...what, ours: own, peer: { name, values }, goal: 1, goalIs })];
  });
}

async function measure(arm: Arm, parked: number): Promise<Map<string, number>> {
  const values = new Map<string, number>();
  {
    await using server = await arm.start();
    const program = startProgram(arm, server, ["measure", "--parked", String(parked)]);
    let emptyMiB = Number.NaN;
    program.onLine((line) => {
      if (!line.startsWith("{")) return;
      const { metric, value } = JSON.parse(line) as PeerValue;
      if (metric === "signal to next step, p99") emptyMiB = memoryMiB(server.pid) ?? Number.NaN;
      if (metric !== "parked") {
        values.set(metric, value);
        return;
      }
      const usedMiB = (memoryMiB(server.pid) ?? Number.NaN) - emptyMiB;
      values.set("server memory per parked run", (usedMiB * 1_024) / value);
      program.child.stdin.end("go on\n");
    });
    const code = await program.ended;
    if (code !== 0) throw new Error(`its program ended with ${code}`);
  }
  values.set("kill -9 to the repeated step", await measureKill(arm));
  return values;
}

/** Kills the process that runs a step, starts it anew at once, and returns the median time until the step begins again, in ms. */
async function measureKill(arm: Arm): Promise<number> {
  await using server = await arm.start();
  const folder = mkdtempSync(join(tmpdir(), "konverge-stall-"));
  const env = {
    STALL_FOLDER: folder,
    PEER_PREFIX: "bench-stall",
    PEER_PORT: String(await freePort()),
  };
  const times: number[] = [];
  try {
    for (let n = 0; n < KILLS; n++) {
      const first = startProgram(arm, server, ["stall"], env);
      await first.printed("ready");
      const stalled = first.printed(`stalled stall-${n}`);
      first.child.stdin.write(`stall-${n}\n`);
      await stalled;
      first.child.kill("SIGKILL");
      const killedMs = performance.now();
      await first.ended;
      const second = startProgram(arm, server, ["stall"], env);
      await second.printed(`resumed stall-${n}`);
      times.push(performance.now() - killedMs);
      second.child.stdin.end();
      await second.ended;
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
  return times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)] ?? Number.NaN;
}

interface Program {
  readonly child: ChildProcessByStdio<Writable, Readable, null>;
  /** Resolves with its exit code. */
  readonly ended: Promise<number | null>;
  /** Calls `heed` with each line of its output from now on. */
  readonly onLine: (heed: (line: string) => void) => void;
  /** Resolves when it prints this line. */
  readonly printed: (line: string) => Promise<void>;
}

function startProgram(
  { program }: Arm,
  { url }: EngineServer,
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
): Program {
  const options = program.endsWith(".ts") ? ["--conditions=@konverge/source"] : [];
  const child = spawn(process.execPath, [...options, program, ...args], {
    env: { ...process.env, PEER_PORT: "9180", ...env, PEER_URL: url },
    stdio: ["pipe", "pipe", "inherit"],
  });
  const ended = once(child, "exit").then(([code]) => code as number | null);
  const lines = createInterface({ input: child.stdout });
  return {
    child,
    ended,
    onLine: (heed) => void lines.on("line", heed),
    async printed(wanted) {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      lines.on("line", (line) => line === wanted && resolve());
      void ended.then(() => reject(new Error(`its program ended before "${wanted}"`)));
      await promise;
    },
  };
}

/** Installs the peers outside of the lock file: none of them is a part of Konverge. */
async function installPeers(log: (line: string) => void): Promise<void> {
  if (existsSync(`${PEERS}/node_modules`)) return;
  log("installing Restate, DBOS and Temporal's SDK outside the lock file");
  // Not `npm ci`: it refuses a lock file that lacks packages of other platforms.
  await execute("npm", ["install", "--no-save", "--no-audit", "--no-fund"], { cwd: PEERS });
}
