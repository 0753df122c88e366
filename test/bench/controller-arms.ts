import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { ControllerWorkerConfig } from "./controller-worker.ts";
import { drained, openGaugeQueue } from "./gauge-queue.ts";
import { buildAsShipped } from "./as-shipped.ts";
import { findPythonPackages } from "../../infra/host/python-packages.js";
import { buildGoPeer, buildJavaPeer, buildRustPeer } from "./build-peer.ts";
import { isWanted } from "./measure.ts";
import { startPeerProcess, type PeerProcess } from "./peer-process.ts";

const execute = promisify(execFile);
/** A rate of the guard that does not limit: many times the capacity of the server. */
export const FREE_RATE = 20_000;

/** One way to run the controller. */
export interface Arm {
  readonly name: string;
  readonly ours: boolean;
  /** Limits a slow arm to the first round and to every `n`-th object. */
  readonly onceOnEvery?: number;
  /** Starts its processes; resolves when they are idle. */
  start(): Promise<readonly PeerProcess[]>;
}

export interface ArmOptions {
  readonly redisUrl: string;
  readonly kubeconfigPath: string;
  readonly log: (line: string) => void;
}

interface AllArmsOptions extends ArmOptions {
  /** Count of the objects that exist. */
  readonly objects: number;
}

/** The arms of one framework. Their names begin with the group's name. */
interface ArmGroup {
  readonly name: string;
  /** Builds the program and returns its arms. If the build fails, logs the reason and returns no arms. */
  readonly build: (options: AllArmsOptions) => Promise<readonly Arm[]>;
}

const GROUPS: readonly ArmGroup[] = [
  {
    name: "ours",
    build: async (options) => {
      const worker = (await buildAsShipped(["controller-worker.ts"]))["controller-worker.ts"];
      return [
        ...[1, 2, 4].map((workers) =>
          konvergeArm(
            `ours, ${workers} ${workers === 1 ? "worker" : "workers"}, 16 at a time each, ${FREE_RATE}/s`,
            options,
            { worker, workers, ratePerSecond: FREE_RATE },
          ),
        ),
        konvergeArm("ours, 1 worker, defaults (16 at a time, 500/s)", options, {
          worker,
          workers: 1,
        }),
      ];
    },
  },
  {
    name: "controller-runtime",
    build: async (options) => {
      const program = await buildGoPeer("controller-runtime", options.log);
      if (program === undefined) return [];
      const run = (name: string, args: readonly string[]): Arm =>
        controllerRuntimeArm(name, options, { program, args });
      const limited = ["-concurrency", "16", "-qps", "20", "-burst", "30"];
      return [
        run("1 at a time, no client limit (its defaults)", []),
        run("16 at a time, no client limit", ["-concurrency", "16"]),
        run("64 at a time, no client limit", ["-concurrency", "64"]),
        {
          ...run("16 at a time, 20/s with a burst of 30 (default before 0.21)", limited),
          onceOnEvery: 10,
        },
      ];
    },
  },
  {
    name: "client-node by hand",
    build: async (options) => {
      const programs = await buildAsShipped(["controller-client-node.ts"]);
      return [clientNodeArm(programs["controller-client-node.ts"], options)];
    },
  },
  {
    name: "@dot-i/k8s-operator",
    build: async (options) => {
      const program = await installNodePeer("dot-i", options.log);
      return program === undefined
        ? []
        : [nodePeerArm("@dot-i/k8s-operator, 1 at a time", [program], options)];
    },
  },
  {
    name: "kube-rs",
    build: async (options) => {
      const program = await buildRustPeer("kube-rs", options.log);
      return program === undefined ? [] : [kubeRsArm(program, options)];
    },
  },
  {
    name: "Java Operator SDK",
    build: async (options) => {
      const classPath = await buildJavaPeer("josdk", options.log);
      return classPath === undefined ? [] : [josdkArm(classPath, options)];
    },
  },
  {
    name: "kopf",
    build: async (options) => {
      const python = await installKopf(options.log);
      return python === undefined ? [] : [kopfArm(python, options)];
    },
  },
];

/**
 * Returns the arms whose names contain one of the texts; all arms if there are no texts. Builds only the named groups if each text
 * contains the name of a group.
 * @throws Error if no arm matches, or none could be built
 */
export async function makeArms(options: AllArmsOptions, wanted: readonly string[]): Promise<Arm[]> {
  const named = GROUPS.filter(({ name }) => wanted.some((text) => text.includes(name)));
  const isNamed = wanted.every((text) => named.some(({ name }) => text.includes(name)));
  const arms: Arm[] = [];
  for (const { build } of wanted.length > 0 && isNamed ? named : GROUPS) {
    arms.push(...(await build(options)));
  }
  const found = arms.filter(({ name }) => isWanted(name, wanted));
  if (found.length > 0) return found;
  const names = arms.map(({ name }) => name).join("; ");
  if (arms.length === 0)
    throw new Error("no selected controller could be built; see the log lines above");
  throw new Error(`--arm must match the name of a controller (got ${wanted.join(", ")}): ${names}`);
}

/** Workers of Konverge with the Node options of the manifests. */
export function konvergeArm(
  name: string,
  { redisUrl, kubeconfigPath }: ArmOptions,
  {
    worker,
    workers,
    ...rest
  }: { readonly worker: string; readonly workers: number } & Pick<
    ControllerWorkerConfig,
    "ratePerSecond" | "ported"
  >,
): Arm {
  return {
    name,
    ours: true,
    async start() {
      const prefix = `bench-${crypto.randomUUID()}`;
      const config: ControllerWorkerConfig = {
        redisUrl,
        kubeconfigPath,
        prefix,
        ...rest,
      };
      const processes = await startAll(workers, () =>
        startNode(AS_DEPLOYED, worker, [JSON.stringify(config)]),
      );
      const queue = openGaugeQueue(redisUrl, prefix);
      await drained(queue);
      await queue.close();
      return processes;
    },
  };
}

export function controllerRuntimeArm(
  name: string,
  { kubeconfigPath }: ArmOptions,
  { program, args }: { readonly program: string; readonly args: readonly string[] },
): Arm {
  return {
    name: `controller-runtime, ${name}`,
    ours: false,
    start: () =>
      startAll(1, () => startPeerProcess(program, ["-kubeconfig", kubeconfigPath, ...args])),
  };
}

function clientNodeArm(program: string, { kubeconfigPath }: ArmOptions): Arm {
  return {
    name: "client-node by hand, 16 at a time",
    ours: false,
    start: () => startAll(1, () => startNode([], program, [kubeconfigPath])),
  };
}

function nodePeerArm(name: string, args: readonly string[], { kubeconfigPath }: ArmOptions): Arm {
  const env = { ...process.env, KUBECONFIG: kubeconfigPath, LOG_LEVEL: "silent" };
  return {
    name,
    ours: false,
    start: () => startAll(1, () => startPeerProcess(process.execPath, args, env)),
  };
}

function kubeRsArm(program: string, { kubeconfigPath }: ArmOptions): Arm {
  return {
    name: "kube-rs, 16 at a time",
    ours: false,
    start: () => startAll(1, () => startPeerProcess(program, [kubeconfigPath, "16"])),
  };
}

function josdkArm(classPath: string, { kubeconfigPath }: ArmOptions): Arm {
  const args = ["-cp", classPath, "dev.konverge.bench.Main", kubeconfigPath, "16"];
  return {
    name: "Java Operator SDK, 16 at a time",
    ours: false,
    start: () => startAll(1, () => startPeerProcess("java", args)),
  };
}

function kopfArm(python: string, { kubeconfigPath, objects }: AllArmsOptions): Arm {
  const main = fileURLToPath(new URL("peers/kopf/main.py", import.meta.url));
  const env = { ...process.env, KUBECONFIG: kubeconfigPath };
  return {
    name: "kopf, default concurrency",
    ours: false,
    start: () => startAll(1, () => startPeerProcess(python, ["-B", main, String(objects)], env)),
  };
}

/** Returns a Python that has kopf; undefined, and logs the reason, if it cannot be installed. */
async function installKopf(log: (line: string) => void): Promise<string | undefined> {
  const requirements = fileURLToPath(new URL("peers/kopf/requirements.txt", import.meta.url));
  const packages = { name: "kopf-peer", requirements };
  const found = await findPythonPackages(packages, { log, build: true });
  if ("path" in found) return found.path;
  log(`without kopf: ${found.missing}`);
  return undefined;
}

/** The Node options of a worker in the manifests. The limit makes V8 collect garbage before the heap has doubled. */
export const AS_DEPLOYED = ["--max-old-space-size=384", "--max-semi-space-size=4"];

/**
 * Installs the program in `peers/<name>` outside the project's lock file, and returns its path. Returns undefined and logs
 * the reason if it cannot be installed.
 */
async function installNodePeer(
  name: string,
  log: (line: string) => void,
): Promise<string | undefined> {
  const folder = fileURLToPath(new URL(`peers/${name}`, import.meta.url));
  try {
    if (!existsSync(`${folder}/node_modules`)) {
      log(`installing the ${name} peer`);
      await execute("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund"], { cwd: folder });
    }
    return `${folder}/main.js`;
  } catch (error) {
    log(`without ${name}: ${error instanceof Error ? error.message : String(error)}`);
    return undefined;
  }
}

/** The arguments of this process, so that `--cpu-prof` reaches the workers, without those that select the sources. */
function startNode(
  options: readonly string[],
  program: string,
  args: readonly string[],
): PeerProcess {
  const own = process.execArgv.filter((argument) => !argument.startsWith("--conditions"));
  return startPeerProcess(process.execPath, [...options, ...own, program, ...args]);
}

async function startAll(count: number, start: () => PeerProcess): Promise<PeerProcess[]> {
  const processes = Array.from({ length: count }, start);
  try {
    await Promise.all(processes.map(({ ready }) => ready));
    return processes;
  } catch (error) {
    await Promise.allSettled(processes.map((each) => each.stop()));
    throw error;
  }
}
