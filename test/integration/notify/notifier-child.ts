/** A leader of notifications in a separate process, which a test kills. Reports one fault. */
import type { Fault } from "@konverge/core";
import { faultId, openNotificationStore } from "@konverge/queue";
import { createMetrics } from "@konverge/telemetry";
import { webhook } from "@konverge/worker";
import { keepLog } from "../../../apps/cli/src/testing/kept-log.ts";
import { Notifier } from "../../../libs/worker/src/notify/notifier.ts";

export interface NotifierChildConfig {
  readonly redis: { readonly url: string; readonly deadlineMs: number };
  readonly prefix: string;
  readonly cluster: string;
  readonly receiver: string;
  readonly fault: Fault;
}

const { receiver, fault, ...place } = JSON.parse(process.argv[2] ?? "{}") as NotifierChildConfig;
const store = openNotificationStore({ ...place, onError: () => undefined });
void new Notifier({
  rules: [
    { on: ["approval"], to: webhook(receiver, { format: "json", timeout: "30s" }), group: "0s" },
  ],
  store,
  observe: () =>
    Promise.resolve({ faults: new Map([[faultId(fault), fault]]), partial: new Set() }),
  place: { installation: "test", cluster: place.cluster },
  env: {},
  log: keepLog([]),
  metrics: createMetrics({ version: "test" }),
  everyMs: 20,
  leaseMs: 1_000,
});
process.stdout.write("ready\n");
