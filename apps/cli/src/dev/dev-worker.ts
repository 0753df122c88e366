import { KonvergeError } from "@konverge/core";
import type { LocalProcess, LocalStack } from "@konverge/local-stack";
import { toText } from "./log-text.ts";

export interface DevWorkerOptions {
  readonly config: string;
  /** True if other installations may use the cluster. */
  readonly isShared: boolean;
  /** Files and folders with CRDs of other projects. */
  readonly crds: readonly string[];
  readonly start: LocalStack["start"];
  readonly print: (line: string) => void;
}

/** The worker of `konverge dev`. A change replaces the process, because modules cannot be reloaded. */
export interface DevWorker {
  /**
   * Applies the CRDs and starts a worker from the current files; the previous worker then drains and stops. Returns false if
   * the new worker failed to start and the previous one keeps running. Does not reject because of the files.
   */
  replace(): Promise<boolean>;
  stop(): Promise<void>;
}

/** Long enough for the lists of large clusters. */
const READY_MS = 120_000;
const DRAIN_MS = 10_000;

export function createDevWorker(options: DevWorkerOptions): DevWorker {
  const { config, isShared, crds, start, print } = options;
  let current: LocalProcess | undefined;
  let starting: LocalProcess | undefined;
  let stopped = false;

  const run = async (args: readonly string[], message: string) => {
    const child = start(args, { KONVERGE_METRICS_PORT: "0" });
    starting = child;
    const lines: string[] = [];
    let isReady = false;
    child.onLine((line) => {
      if (isReady) show(line);
      else lines.push(line);
    });
    try {
      await child.logged(message, READY_MS);
    } catch (error) {
      await child.stop(DRAIN_MS);
      if (!stopped) explain(lines, error);
      return undefined;
    } finally {
      starting = undefined;
    }
    isReady = true;
    lines.forEach(show);
    return child;
  };
  const show = (line: string) => {
    const text = toText(line);
    if (text !== undefined) print(text);
  };
  const explain = (lines: readonly string[], error: unknown) => {
    // Messages about the files, without stack frames.
    const messages = lines.filter((line) => !/^\s+at /.test(line) && line.trim() !== "");
    if (messages.length === 0 && error instanceof KonvergeError) messages.push(error.message);
    for (const line of messages) show(line);
  };
  /** Reports a worker that ends by itself. The next change starts a new one. */
  const follow = async (child: LocalProcess) => {
    const how = await child.ended;
    if (current !== child) return;
    current = undefined;
    if (!stopped) print(`worker ${how}; save a file to start it again`);
  };

  return {
    async replace() {
      const next = await run(
        [
          "dev-worker",
          "--config",
          config,
          ...(isShared ? ["--shared"] : []),
          ...(crds.length === 0 ? [] : ["--crds", ...crds]),
        ],
        "worker ready",
      );
      if (next === undefined) return false;
      const old = current;
      current = next;
      void follow(next);
      await old?.stop(DRAIN_MS);
      return true;
    },
    async stop() {
      stopped = true;
      const [last, next] = [current, starting];
      current = undefined;
      await Promise.all([last?.stop(DRAIN_MS), next?.stop(DRAIN_MS)]);
    },
  };
}
