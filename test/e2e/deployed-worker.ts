import { spawn, type ChildProcess } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { defined, type ApiObject } from "@konverge/core";

interface Container {
  readonly name: string;
  readonly image: string;
  readonly args: readonly string[];
  readonly env: readonly { readonly name: string; readonly value: string }[];
}

export interface Deployment extends ApiObject {
  readonly spec: {
    readonly replicas?: number;
    readonly template: {
      readonly metadata: object;
      readonly spec: {
        readonly containers: readonly Container[];
        readonly terminationGracePeriodSeconds: number;
      };
    };
  };
}

export interface DeployedProcess {
  readonly lines: readonly string[];
  /** Resolves at a log line with this message; rejects with the output if the process exits first. */
  said(message: string): Promise<Readonly<Record<string, unknown>>>;
  readonly exitCode: Promise<number | null>;
  stop(): Promise<number | null>;
}

export interface Host {
  readonly redisUrl: string;
  /** The kubeconfig of pods with access to the API server. */
  readonly kubeconfig?: string;
  /** The port of the HTTP API. */
  readonly token?: string;
  /** The folder for the files of mounted Secrets. */
  readonly folder: string;
}

/**
 * Starts the first container of a Deployment as a process with its arguments, its environment and the files of its secrets.
 * Ports and paths are those of this machine.
 */
export function runContainer({ spec }: Deployment, host: Host): DeployedProcess {
  const [container] = spec.template.spec.containers;
  if (container === undefined) throw new Error("the Deployment has no container");
  const env = Object.fromEntries(
    container.env.map(({ name, value }) => {
      if (name === "KONVERGE_REDIS_URL_FILE") {
        const path = join(host.folder, "redis-url");
        writeFileSync(path, `${host.redisUrl}\n`);
        return [name, path];
      }
      if (name === "KONVERGE_TOKEN_FILE") {
        const path = join(host.folder, "api-token");
        writeFileSync(path, host.token ?? "");
        return [name, path];
      }
      if (/^KONVERGE_(?:METRICS|API)_PORT$/.test(name)) return [name, "0"];
      return [name, value === "0.0.0.0" ? "127.0.0.1" : value];
    }),
  );
  const { PATH = "", HOME = "", NODE_COMPILE_CACHE = "" } = process.env;
  const child = spawn(
    process.execPath,
    ["--conditions=@konverge/source", "apps/cli/src/main.ts", ...container.args],
    {
      // Only the Lease duration differs, so that a second worker waits less for the first one's Lease.
      env: {
        PATH,
        HOME,
        NODE_COMPILE_CACHE,
        KONVERGE_LEASE_DURATION: "4s",
        ...defined({ KUBECONFIG: host.kubeconfig }),
        ...env,
      },
      stdio: ["ignore", "pipe", "pipe"],
    },
  );
  return follow(child);
}

/** Collects the log lines of a process. */
export function follow(child: ChildProcess): DeployedProcess {
  const lines: string[] = [];
  const listeners = new Set<() => void>();
  for (const stream of [child.stdout, child.stderr]) {
    if (stream === null) continue;
    createInterface({ input: stream }).on("line", (line) => {
      lines.push(line);
      for (const look of listeners) look();
    });
  }
  const exitCode = new Promise<number | null>((resolve) => {
    child.once("close", (code) => resolve(code));
  });
  return {
    lines,
    exitCode,
    said: (message) =>
      new Promise((resolve, reject) => {
        const look = () => {
          const line = lines.find((text) => text.includes(`"msg":"${message}"`));
          if (line !== undefined) resolve(JSON.parse(line) as Record<string, unknown>);
        };
        listeners.add(look);
        look();
        void exitCode.then((code) =>
          reject(new Error(`ended with ${code} before "${message}":\n${lines.join("\n")}`)),
        );
      }),
    async stop() {
      child.kill("SIGTERM");
      return await exitCode;
    },
  };
}
