/** A worker process for random programs, to be killed and stopped. */
import { Redis } from "ioredis";
import { openWorkflows } from "@konverge/workflow";
import { makeInterpreter } from "./workflow-programs.ts";

const { url, prefix, leaseMs, workerId, concurrency } = JSON.parse(process.argv[2] ?? "{}") as {
  readonly url: string;
  readonly prefix: string;
  readonly leaseMs: number;
  readonly workerId: string;
  readonly concurrency: number;
};
const workflows = openWorkflows({
  redis: { url },
  prefix,
  leaseMs,
  onError: (error) => process.stderr.write(`${workerId}: ${error.message}\n`),
});
const interpreter = makeInterpreter(new Redis(url), prefix, workerId);
workflows.work({ workflows: [interpreter], workerId, concurrency });
process.stdout.write("up\n");
