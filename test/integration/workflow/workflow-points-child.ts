/** A worker for the tour in a separate process, which dies at the call set for `die-at-call.ts`. */
import { Redis } from "ioredis";
import { openWorkflows } from "@konverge/workflow";
import { makeTour } from "./workflow-samples.ts";

export interface PointsChildConfig {
  readonly url: string;
  readonly prefix: string;
  readonly leaseMs: number;
}

const { url, prefix, leaseMs } = JSON.parse(process.argv[2] ?? "{}") as PointsChildConfig;
const { tour, child } = makeTour(new Redis(url), prefix);
openWorkflows({
  redis: { url },
  prefix,
  leaseMs,
  onError: (error) => process.stderr.write(`${error.message}\n`),
}).work({ workflows: [tour, child], workerId: "dies" });
