/** A workflow worker in a separate process, which a test kills. */
import { Redis } from "ioredis";
import { openWorkflows } from "@konverge/workflow";
import { makeThreeSteps } from "./workflow-samples.ts";

export interface WorkflowChildConfig {
  readonly url: string;
  readonly prefix: string;
  readonly leaseMs: number;
  /** Step in whose body, or after whose record, the process kills itself. */
  readonly dieIn?: string;
  readonly dieAfter?: string;
  /** Step in whose body the process stops itself until it receives SIGCONT. */
  readonly haltIn?: string;
}

const config = JSON.parse(process.argv[2] ?? "{}") as WorkflowChildConfig;
const { url, prefix, leaseMs } = config;
const redis = new Redis(url);
const workflows = openWorkflows({
  redis: { url },
  prefix,
  leaseMs,
  onError: (error) => process.stderr.write(`${error.message}\n`),
});
workflows.work({ workflows: [makeThreeSteps(redis, prefix, config)], workerId: "child" });
process.once("SIGTERM", () => {
  void workflows.close().then(() => redis.quit());
});
