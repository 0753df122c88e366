import { createInterface } from "node:readline/promises";
import { KonvergeError } from "@konverge/core";
import { playAct, type ActFigures, type PlayedAct } from "./act.ts";
import { findMostFought } from "./most-contended.ts";
import { reportConflict } from "./conflict-timeline.ts";
import { exampleFile } from "./example-file.ts";
import { createProgress } from "./progress.ts";
import { renderTable } from "./report.ts";
import {
  apiServerOf,
  embeddedApiServer,
  startLocalStack,
  type LocalStack,
} from "@konverge/local-stack";
import { envtestApiServer } from "./envtest-api-server.ts";
import { isolatedEnv } from "./isolated-env.ts";
import { CLI_SCRIPT } from "./scripts.ts";
import { INTERRUPTED, stayUp } from "./stay-up.ts";
import { createWorld, type Installable } from "./world.ts";

export type ClusterKind = "embedded" | "envtest" | "kubeconfig";

export interface DemoOptions {
  readonly cluster: ClusterKind;
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

const POOLS = 20;
const STEPS = 8;
const STEP_MS = 1_250;
/** About what a server in the next region takes; in memory nobody would ever be in anybody's way. */
const LATENCY_MS = 20;

/** Plays the story and returns the exit code: 0 when both acts converged and nothing was lost. */
export async function runDemo(options: DemoOptions): Promise<number> {
  if (options.outage && options.cluster === "kubeconfig") {
    throw new KonvergeError(
      "invalid_config",
      "--outage: the demo stops only an API server of its own; use --cluster embedded or envtest",
    );
  }
  const resourcesFile = exampleFile("resources.ts");
  const progress = createProgress(process.stderr);
  const apiServers = {
    embedded: () => embeddedApiServer({ latencyMs: LATENCY_MS }),
    envtest: () => envtestApiServer(progress.print),
    kubeconfig: () => apiServerOf(options.kubeconfig),
  };
  await using stack = await startLocalStack({
    name: "demo",
    cli: CLI_SCRIPT,
    startApiServer: apiServers[options.cluster](),
    env: isolatedEnv(),
    logs: options.logs,
    log: progress.print,
    apiPort: 0,
  });
  await assertMayWrite(options, stack);
  progress.print(`API server ${stack.serverVersion} (${options.cluster}), ${stack.redis.version}`);
  progress.print(`watch it at ${stack.apiUrl}/ (the dashboard) as it happens`);
  const world = createWorld(stack.client, stack.installation);
  const resources = (await import(resourcesFile)) as Record<string, Installable>;
  const played: PlayedAct[] = [];
  try {
    await world.install(Object.values(resources));
    for (const name of ["lazy", "pro"] as const) {
      options.signal.throwIfAborted();
      await played.at(-1)?.end();
      progress.begin(`act ${played.length + 1}, ${name}`);
      played.push(
        await playAct({
          ...options,
          name,
          outage: options.outage && name === "pro",
          stack,
          world,
          configs: options.split
            ? [exampleFile("node-pool.config.ts"), exampleFile("autoscaler.config.ts")]
            : [exampleFile("konverge.config.ts")],
          pools: POOLS,
          steps: STEPS,
          stepMs: STEP_MS,
          print: progress.update,
        }),
      );
    }
    progress.end();
    await describeRun(options, stack, world.namespace, played);
    if (!options.exit) {
      const fought = await findMostFought(stack.apiUrl);
      if (fought !== undefined) progress.print(`the most fought object: ${fought}`);
      await stayUp(`${stack.apiUrl}/`, { signal: options.signal, print: progress.print });
    }
    return played.every(({ figures }) => isGood(figures)) ? 0 : 1;
  } catch (error) {
    if (!options.signal.aborted) throw error;
    progress.print("interrupted");
    return INTERRUPTED;
  } finally {
    progress.end();
    progress.print("removing what the demo made");
    await played.at(-1)?.end();
    await world.remove(["node-pool", "autoscaler"].map((name) => `${stack.installation}-${name}`));
  }
}

function isGood({ converged, lostUpdates, outage }: ActFigures): boolean {
  return converged && lostUpdates === 0 && (outage?.lost ?? 0) === 0;
}

async function describeRun(
  options: DemoOptions,
  stack: LocalStack,
  namespace: string,
  played: readonly PlayedAct[],
): Promise<void> {
  const acts = played.map(({ figures }) => figures);
  if (options.output === "json") {
    const { redis, serverVersion } = stack;
    const cluster = { kind: options.cluster, version: serverVersion };
    const workers = options.workers * (options.split ? 2 : 1);
    process.stdout.write(
      `${JSON.stringify({ cluster, redis: { version: redis.version }, workers, acts }, null, 2)}\n`,
    );
    return;
  }
  const counted =
    stack.apiServer.auditLog === undefined
      ? "calls counted by our own transport"
      : "calls counted by the API server, without watches, leases, events and the outside writer";
  const lines = ["", renderTable(acts), "", `  (${counted})`];
  for (const { figures, lost } of played) {
    for (const { pool, field, wrote, found } of lost.slice(0, 5)) {
      lines.push(`  LOST in ${figures.name}: ${pool} ${field}: wrote ${wrote}, found ${found}`);
    }
  }
  const last = played.at(-1);
  const told =
    last === undefined ? undefined : await reportConflict(stack.apiUrl, namespace, last.pools);
  if (told !== undefined) lines.push("", "One conflict:", ...told);
  process.stdout.write(`${lines.join("\n")}\n`);
}

/** A cluster that is not on this machine is somebody's; ask before writing to it. */
async function assertMayWrite(
  { cluster, yes }: DemoOptions,
  { client }: LocalStack,
): Promise<void> {
  if (cluster !== "kubeconfig" || yes) return;
  const { hostname } = new URL(client.server);
  if (hostname === "localhost" || hostname === "[::1]" || hostname.startsWith("127.")) return;
  if (!process.stdin.isTTY) {
    throw new KonvergeError(
      "invalid_config",
      `the demo would create CRDs and a namespace on ${client.server}; say --yes to allow it`,
    );
  }
  const ask = createInterface({ input: process.stdin, output: process.stderr });
  const answer = await ask.question(
    `Create the demo's CRDs and namespace on ${client.server}? [y/N] `,
  );
  ask.close();
  if (!/^y(es)?$/i.test(answer.trim())) throw new KonvergeError("cancelled", "nothing was created");
}
