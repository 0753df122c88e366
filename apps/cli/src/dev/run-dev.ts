import { access } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { KonvergeError } from "@konverge/core";
import { apiServerOf, embeddedApiServer, startLocalStack } from "@konverge/local-stack";
import { createDevWorker } from "./dev-worker.ts";
import { watchFiles } from "./watch-files.ts";

export interface DevOptions {
  readonly config: string;
  readonly cluster: "embedded" | "kubeconfig";
  readonly kubeconfig: string | undefined;
  readonly port: number;
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
  await using stack = await startLocalStack({
    name: "dev",
    cli: process.argv[1] ?? "",
    startApiServer:
      options.cluster === "embedded" ? embeddedApiServer() : apiServerOf(options.kubeconfig),
    log: print,
    apiPort: options.port,
  });
  const { serverVersion, redis, apiServer, apiUrl, start } = stack;
  print(`Redis       ${redis.url} (${redis.version})`);
  print(
    `Kubernetes  ${options.cluster} ${serverVersion}: export KUBECONFIG=${apiServer.kubeconfigPath}`,
  );
  print(`Dashboard   ${apiUrl}/`);
  print(`API         ${apiUrl}/v1`);
  const worker = createDevWorker({ config, start, print: (line) => print(`${time()} ${line}`) });
  try {
    await follow(worker, {
      folder: dirname(config),
      print: (line) => print(`${time()} ${line}`),
      signal,
    });
  } finally {
    await worker.stop();
    print(`${time()} stopped`);
  }
}

interface Following {
  readonly folder: string;
  readonly print: (line: string) => void;
  readonly signal: AbortSignal;
}

/** Replaces the worker after every change. Changes during a start cause one more start. */
async function follow(
  worker: ReturnType<typeof createDevWorker>,
  { folder, print, signal }: Following,
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
