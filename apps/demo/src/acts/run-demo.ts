import { createInterface } from "node:readline/promises";
import { KonvergeError } from "@konverge/core";
import {
  apiServerOf,
  embeddedApiServer,
  startLocalStack,
  type LocalStack,
} from "@konverge/local-stack";
import { playAct, type ActFigures, type PlayedAct } from "./act.ts";
import type { ActName } from "./act-names.ts";
import { envtestApiServer } from "../stage/envtest-api-server.ts";
import { exampleFile } from "../stage/example-file.ts";
import { isolatedEnv } from "../stage/isolated-env.ts";
import { startKonvergeWorkers } from "./konverge-workers.ts";
import { findMostContended } from "../load/most-contended.ts";
import { startNaiveProcess } from "../naive/start-naive-process.ts";
import { createProgress, type DemoProgress } from "../stage/progress.ts";
import { renderTable } from "./report.ts";
import { CLI_SCRIPT, demoFile } from "../stage/scripts.ts";
import { addressLine, stayUp, untilInterrupted } from "../stage/stay-up.ts";
import { createWorld, type Installable, type World } from "../load/world.ts";

export type ClusterKind = "embedded" | "envtest" | "kubeconfig";

export interface DemoOptions {
  readonly cluster: ClusterKind;
  readonly acts: readonly ActName[];
  readonly kubeconfig: string | undefined;
  readonly workers: number;
  readonly split: boolean;
  readonly exit: boolean;
  readonly output: "table" | "json";
  readonly yes: boolean;
  readonly logs: string | undefined;
  readonly seed: number;
  readonly blindWriter: boolean;
  readonly outage: boolean;
  /** Aborted by Ctrl-C. */
  readonly signal: AbortSignal;
}

const LOAD = { pools: 20, steps: 6, stepMs: 1_250 };
/** About the latency of a server in a neighboring region. An in-memory server answers too fast for conflicts. */
const LATENCY_MS = 20;

/** Plays the acts and returns the exit code: 0 if both Konverge acts converged without a lost update. */
export async function runDemo(options: DemoOptions): Promise<number> {
  if (options.outage && options.cluster === "kubeconfig") {
    throw new KonvergeError(
      "invalid_config",
      "--outage freezes the demo's own API server; use --cluster embedded or envtest",
    );
  }
  if (options.outage && !options.acts.includes("konverge")) {
    throw new KonvergeError("invalid_config", "--outage needs the konverge act; add it to --acts");
  }
  const progress = createProgress(process.stderr);
  const { print } = progress;
  await using stack = await startStack(options, print);
  await assertMayWrite(options, stack);
  print(`API server ${stack.serverVersion} (${options.cluster}), ${stack.redis.version}`);
  print(addressLine(`${stack.apiUrl}/`, options));
  const world = createWorld(stack.client, stack.installation);
  const played: PlayedAct[] = [];
  const play = async () => {
    const resources = (await import(exampleFile("resources"))) as Record<string, Installable>;
    await world.install(Object.values(resources));
    for (const name of options.acts) {
      options.signal.throwIfAborted();
      await played.at(-1)?.end();
      played.push(await playNext(name, { options, stack, world, progress }));
    }
    progress.end();
    printResult(options, stack, played);
    if (!options.exit) {
      const contended = await findMostContended(stack.apiUrl);
      if (contended !== undefined) print(`most contended object: ${contended}`);
      await stayUp(`${stack.apiUrl}/`, { signal: options.signal, print });
    }
    return played.every(({ figures }) => isGood(figures)) ? 0 : 1;
  };
  try {
    return await untilInterrupted({ signal: options.signal, progress }, play);
  } finally {
    print("removing the demo's objects");
    await played.at(-1)?.end();
    await world.remove(["node-pool", "autoscaler"].map((name) => `${stack.installation}-${name}`));
  }
}

async function startStack(options: DemoOptions, log: (line: string) => void): Promise<LocalStack> {
  const apiServers = {
    embedded: () => embeddedApiServer({ latencyMs: LATENCY_MS }),
    envtest: () => envtestApiServer(log),
    kubeconfig: () => apiServerOf(options.kubeconfig),
  };
  return await startLocalStack({
    name: "demo",
    cli: CLI_SCRIPT,
    startApiServer: apiServers[options.cluster](),
    env: isolatedEnv(),
    logs: options.logs,
    log,
    apiPort: 0,
  });
}

interface Playing {
  readonly options: DemoOptions;
  readonly stack: LocalStack;
  readonly world: World;
  readonly progress: DemoProgress;
}

async function playNext(
  name: ActName,
  { options, stack, world, progress }: Playing,
): Promise<PlayedAct> {
  progress.begin(`act ${options.acts.indexOf(name) + 1} of ${options.acts.length}, ${name}`);
  const { seed, blindWriter, logs, signal } = options;
  const { namespace } = world;
  const outage = options.outage && name === "konverge";
  return await playAct({
    name,
    stack,
    world,
    load: { ...LOAD, seed, blindWriter },
    outage,
    startControllers: () => {
      if (name === "naive") return startNaiveProcess({ stack, namespace, logs });
      const fileOf = (config: string) =>
        name === "lazy" ? demoFile(`lazy/${config}`) : exampleFile(config);
      const configs = options.split ? ["node-pool", "autoscaler"] : ["konverge"];
      return startKonvergeWorkers({
        stack,
        namespace,
        configs: configs.map((config) => fileOf(`${config}.config`)),
        workers: options.workers,
        env: {
          ...(name === "lazy" ? { KONVERGE_CONFLICT_RETRY: "job" } : {}),
          ...(outage ? { KONVERGE_REQUEST_TIMEOUT: "2s" } : {}),
        },
      });
    },
    logs,
    print: progress.update,
    signal,
  });
}

/** The naive act may lose updates; the demo exists to show them. */
function isGood({ name, converged, lostUpdates, outage }: ActFigures): boolean {
  if (name === "naive") return true;
  return converged && lostUpdates === 0 && (outage?.lost ?? 0) === 0;
}

function printResult(options: DemoOptions, stack: LocalStack, played: readonly PlayedAct[]): void {
  const acts = played.map(({ figures }) => figures);
  if (options.output === "json") {
    const cluster = { kind: options.cluster, version: stack.serverVersion };
    const redis = { version: stack.redis.version };
    const workers = options.workers * (options.split ? 2 : 1);
    process.stdout.write(`${JSON.stringify({ cluster, redis, workers, acts }, null, 2)}\n`);
    return;
  }
  const lines = ["", renderTable(acts), "", ...explain(stack)];
  for (const { figures, lost } of played) {
    if (figures.name === "naive") continue;
    for (const { pool, field, wrote, found } of lost.slice(0, 5)) {
      lines.push(`LOST in ${figures.name}: ${pool} ${field}: wrote ${wrote}, found ${found}`);
    }
  }
  process.stdout.write(`${lines.join("\n")}\n`);
}

function explain({ apiServer }: LocalStack): string[] {
  const counted =
    apiServer.auditLog === undefined ? "counted by the clients" : "counted by the API server";
  return [
    "naive     one process, @kubernetes/client-node: informer, PUT, three tries",
    "lazy      Konverge with live reads; a conflict ends the attempt, then retry",
    "konverge  Konverge with reads from watches, field-level writes, object lanes",
    `Same load in all acts. Calls, writes and conflicts: ${counted}.`,
  ];
}

/** Asks for confirmation before writing to a cluster that is not on this machine. */
async function assertMayWrite({ cluster, yes }: DemoOptions, { client }: LocalStack) {
  if (cluster !== "kubeconfig" || yes) return;
  const { hostname } = new URL(client.server);
  if (hostname === "localhost" || hostname === "[::1]" || hostname.startsWith("127.")) return;
  if (!process.stdin.isTTY) {
    throw new KonvergeError(
      "invalid_config",
      `the demo would create CRDs and a namespace on ${client.server}; pass --yes to allow it`,
    );
  }
  const ask = createInterface({ input: process.stdin, output: process.stderr });
  const answer = await ask.question(
    `Create the demo's CRDs and namespace on ${client.server}? [y/N] `,
  );
  ask.close();
  if (!/^y(es)?$/i.test(answer.trim())) throw new KonvergeError("cancelled", "nothing was created");
}
