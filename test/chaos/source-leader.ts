/** A process that runs event sources as the leader of their controller, to be killed and stopped. */
import { createWorkQueue, openSourceStore } from "@konverge/queue";
import { createMetrics } from "@konverge/telemetry";
import { keepLog } from "../../apps/cli/src/testing/kept-log.ts";
import { runSources } from "../../libs/engine/src/sources/run-sources.ts";
import { SOURCED, sourcedController } from "./source-world.ts";

export interface SourceLeaderConfig {
  readonly url: string;
  readonly prefix: string;
  readonly worldUrl: string;
  readonly workerId: string;
}

const config = JSON.parse(process.argv[2] ?? "{}") as SourceLeaderConfig;
const { url, prefix, worldUrl, workerId } = config;
const place = { redis: { url }, prefix, cluster: "default" };
// A busy machine may answer late.
const onError = () => undefined;
runSources({
  controller: sourcedController(worldUrl),
  queue: createWorkQueue({ ...place, controller: SOURCED, onError }),
  store: openSourceStore({ ...place, onError }),
  metrics: createMetrics({ version: "test" }),
  log: keepLog([]),
  workerId,
  signal: new AbortController().signal,
}).catch((error: unknown) => {
  throw error;
});
process.stdout.write("up\n");
