import { access } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { KonvergeError } from "@konverge/core";
import { Lease } from "@konverge/kube/kinds";
import {
  apiServerOf,
  embeddedApiServer,
  startLocalStack,
  type LocalStack,
} from "@konverge/local-stack";
import { confirmCluster } from "./confirm-cluster.ts";
import { createDevWorker } from "./dev-worker.ts";
import { createTypeCheck, type TypeCheck } from "./type-check.ts";
import { watchFiles } from "./watch-files.ts";

export interface DevOptions {
  readonly config: string;
  readonly cluster: "embedded" | "kubeconfig";
  readonly kubeconfig: string | undefined;
  /** True if the cluster of the kubeconfig needs no question. */
  readonly isConfirmed: boolean;
  readonly port: number;
  /** Files and folders with CRDs of other projects. */
  readonly crds: readonly string[];
  readonly print: (line: string) => void;
  /** Aborted by Ctrl-C. */
  readonly signal: AbortSignal;
}

/**
 * Runs a local stack: API server, Redis, HTTP API with dashboard, and a worker that each save replaces. Resolves after the
 * signal is aborted and everything has stopped.
 * @throws KonvergeError `invalid_config`, or the error of a part that failed to start
 */
export async function runDev(options: DevOptions): Promise<void> {
  const { signal, print } = options;
  const config = resolve(options.config);
  await access(config).catch((cause: unknown) => {
    throw new KonvergeError("invalid_config", `--config ${options.config} cannot be read`, {
      cause,
    });
  });
  const isShared = options.cluster === "kubeconfig";
  if (isShared && options.crds.length > 0) {
    throw new KonvergeError(
      "invalid_config",
      "--crds is for the embedded API server; leave it out, and install the CRDs in the cluster with their project",
    );
  }
  if (isShared && !options.isConfirmed) await confirmCluster(options);
  await using stack = await startLocalStack({
    name: "dev",
    cli: process.argv[1] ?? "",
    startApiServer: isShared
      ? apiServerOf(options.kubeconfig)
      : embeddedApiServer({ controllers: true }),
    log: print,
    apiPort: options.port,
  });
  const { serverVersion, redis, apiServer, apiUrl, start } = stack;
  print(`Redis       ${redis.url} (${redis.version})`);
  print(`Kubernetes  ${options.cluster} ${serverVersion}`);
  print(`Dashboard   ${apiUrl}/`);
  print(`API         ${apiUrl}/v1`);
  print(
    `For kubectl and konverge in other terminals: export KUBECONFIG=${apiServer.kubeconfigPath} KONVERGE_SERVER=${apiUrl}`,
  );
  const printTimed = (line: string) => print(`${time()} ${line}`);
  const folder = dirname(config);
  const worker = createDevWorker({
    config,
    isShared,
    crds: options.crds,
    start,
    print: printTimed,
  });
  const types = createTypeCheck(folder, printTimed);
  try {
    await follow(worker, { folder, types, print: printTimed, signal });
  } finally {
    types.stop();
    await worker.stop();
    if (isShared) await removeLeases(stack);
    printTimed("stopped");
  }
}

/** Removes the Leases of this installation, whose name no other one has. */
async function removeLeases({ client, installation }: LocalStack): Promise<void> {
  const { items } = await client.list(Lease).catch(() => ({ items: [] }));
  for (const { metadata } of items) {
    if (!metadata.name.startsWith(`${installation}-`)) continue;
    const { namespace = "default", name } = metadata;
    await client.delete(Lease, { namespace, name }).catch(() => undefined);
  }
}

interface Following {
  readonly folder: string;
  readonly types: TypeCheck;
  readonly print: (line: string) => void;
  readonly signal: AbortSignal;
}

/** Replaces the worker after every change. Changes during a start cause one more start. */
async function follow(
  worker: ReturnType<typeof createDevWorker>,
  { folder, types, print, signal }: Following,
): Promise<void> {
  let changed: string | undefined;
  let wake: () => void = () => undefined;
  const unwatch = watchFiles(folder, (path) => {
    changed = path;
    wake();
  });
  signal.addEventListener("abort", () => wake(), { once: true });
  try {
    let isFirst = true;
    while (!signal.aborted) {
      const startedMs = performance.now();
      const ready = await Promise.race([worker.replace(), aborted(signal)]);
      if (signal.aborted) return;
      // After the start, which needs the processor more.
      types.start();
      const tookMs = Math.round(performance.now() - startedMs);
      if (ready)
        print(`worker ready after ${tookMs} ms${isFirst ? "" : ", previous worker drained"}`);
      else
        print(
          isFirst ? "no worker running; save a file to retry" : "previous worker keeps running",
        );
      isFirst &&= !ready;
      await new Promise<void>((done) => {
        wake = done;
        if (changed !== undefined || signal.aborted) done();
      });
      if (changed !== undefined) print(`${changed} changed`);
      changed = undefined;
    }
  } finally {
    unwatch();
  }
}

const aborted = (signal: AbortSignal): Promise<false> =>
  new Promise((done) => {
    if (signal.aborted) done(false);
    else signal.addEventListener("abort", () => done(false), { once: true });
  });

/** Returns the local time, such as `14:03:09`. */
function time(): string {
  return new Date().toTimeString().slice(0, 8);
}
