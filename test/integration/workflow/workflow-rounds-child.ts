/** A worker for the counter in a separate process. */
import { Redis } from "ioredis";
import { openWorkflows } from "@konverge/workflow";
import { makeCounter, makeRounds } from "./workflow-samples.ts";

export interface RoundsChildConfig {
  readonly url: string;
  readonly prefix: string;
  readonly leaseMs: number;
}

const { url, prefix, leaseMs } = JSON.parse(process.argv[2] ?? "{}") as RoundsChildConfig;
const redis = new Redis(url);
const { rounds, child } = makeRounds(redis, prefix);
openWorkflows({
  redis: { url },
  prefix,
  leaseMs,
  onError: (error) => process.stderr.write(`${error.message}\n`),
}).work({ workflows: [makeCounter(redis, prefix), rounds, child], workerId: "dies" });
process.stdout.write("ready\n");
