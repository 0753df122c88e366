import { startProcess, type LocalStack } from "@konverge/local-stack";
import type { ActControllers } from "../load/act-controllers.ts";
import { DEMO_SCRIPT } from "../stage/scripts.ts";
import { NAIVE_AGENT, type NaiveReport } from "./naive-report.ts";

/** Starts the naive controllers in one process, and waits until they are ready. */
export async function startNaiveProcess({
  stack,
  namespace,
  logs,
}: {
  readonly stack: LocalStack;
  readonly namespace: string;
  readonly logs: string | undefined;
}): Promise<ActControllers> {
  const child = startProcess({
    script: DEMO_SCRIPT,
    args: ["naive-controllers", `--namespace=${namespace}`],
    env: { KUBECONFIG: stack.apiServer.kubeconfigPath },
    logs,
  });
  try {
    await child.logged("naive controllers ready");
  } catch (error) {
    await child.stop();
    throw error;
  }
  return {
    pids: [child.pid],
    agent: NAIVE_AGENT,
    metricsUrls: [],
    async totals() {
      await child.stop();
      const report = (await child.logged("naive controllers stopped")) as unknown as NaiveReport;
      return { ...report, jobRetries: 0 };
    },
    stop: () => child.stop(),
  };
}
