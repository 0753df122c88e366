import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { KonvergeError } from "@konverge/core";
import { embeddedApiServer, startLocalStack } from "@konverge/local-stack";
import type { ClusterKind } from "../acts/run-demo.ts";
import { renderChecks } from "../rollout/rollout-report.ts";
import { envtestApiServer } from "../stage/envtest-api-server.ts";
import { isolatedEnv } from "../stage/isolated-env.ts";
import { createProgress } from "../stage/progress.ts";
import { CLI_SCRIPT } from "../stage/scripts.ts";
import { addressLine, stayUp, untilInterrupted } from "../stage/stay-up.ts";
import { playPlan } from "./play-plan.ts";
import { sizeOf } from "./shop.ts";

export interface PlanDemoOptions {
  readonly cluster: ClusterKind;
  readonly exit: boolean;
  readonly output: "table" | "json";
  readonly logs: string | undefined;
  /** Number of apps. */
  readonly objects: number;
  /** Aborted by Ctrl-C. */
  readonly signal: AbortSignal;
}

/** Plays the plan of a new version, and returns the exit code: 0 if its report equals the audit log. */
export async function runPlanDemo(options: PlanDemoOptions): Promise<number> {
  const { cluster, signal } = options;
  if (cluster === "kubeconfig") {
    const detail = "--cluster kubeconfig: the story reads the audit log; use embedded or envtest";
    throw new KonvergeError("invalid_config", detail);
  }
  const size = sizeOf(options.objects);
  const progress = createProgress(process.stderr);
  const { print } = progress;
  const token = randomBytes(24).toString("base64url");
  return await untilInterrupted({ signal, progress }, async () => {
    await using stack = await startLocalStack({
      name: "demo",
      cli: CLI_SCRIPT,
      startApiServer: cluster === "envtest" ? envtestApiServer(print) : embeddedApiServer(),
      env: { ...isolatedEnv(), KONVERGE_TOKEN: token },
      logs: options.logs,
      log: print,
      apiPort: 0,
    });
    await using cleanup = new AsyncDisposableStack();
    const folder = await mkdtemp(join(tmpdir(), "konverge-demo-plan-"));
    cleanup.defer(() => rm(folder, { recursive: true, force: true }));
    print(`API server ${stack.serverVersion} (${cluster})`);
    print(addressLine(`${stack.apiUrl}/`, options));
    if (!options.exit) print(`token: ${token}`);
    const { plan, checks } = await playPlan({ stack, size, folder, cleanup, progress, signal });
    progress.end();
    if (options.output === "json") {
      const document = { scenario: "plan", objects: size.allApps, plan, checks };
      process.stdout.write(`${JSON.stringify(document, null, 2)}\n`);
    } else {
      process.stdout.write(`\n${renderChecks(checks)}\n\n`);
    }
    if (!options.exit) await stayUp(`${stack.apiUrl}/`, { signal, print });
    return checks.every(({ ok }) => ok) ? 0 : 1;
  });
}
