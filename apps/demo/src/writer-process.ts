import { createLocalGate } from "@konverge/core";
import { createKubeClient, loadKubeCredentials } from "@konverge/kube";
import { createLogger } from "@konverge/telemetry";
import { runOutsideWriter } from "./load/outside-writer.ts";
import { DEMO_VERSION } from "./stage/scripts.ts";
import { stopSignal } from "./stage/stop-signal.ts";

export interface WriterFlags {
  readonly namespace: string;
  readonly pools: readonly string[];
  readonly seed: number;
  readonly blind: boolean;
}

/** The outside program of the demo, until a signal. */
export async function runWriterProcess(flags: WriterFlags): Promise<void> {
  const log = createLogger({ service: "outside-writer", version: DEMO_VERSION });
  const client = createKubeClient({
    credentials: loadKubeCredentials({}),
    gate: createLocalGate({ ratePerSecond: 10_000, burst: 10_000 }),
    userAgent: "outside-writer",
  });
  log.info({}, "writer started");
  const report = await runOutsideWriter({
    ...flags,
    client,
    pauseMs: 4,
    thinkMs: 4,
    signal: stopSignal(),
  });
  log.info({ ...report }, "writer done");
  await client.close();
}
