/** A worker in its own process with its own SDK. Prints its spans as JSON lines when it stops. */
import { readSettings } from "@konverge/contracts";
import { defineConfig, startWorkerProcess } from "@konverge/worker";
import { defineController } from "@konverge/engine";
import { captureSpans } from "./trace-capture.ts";
import type { Widget } from "../kube/kube-servers.ts";
import type { ResourceType } from "@konverge/core";

const { widgets, env } = JSON.parse(process.argv[2] ?? "{}") as ChildConfig;

export interface ChildConfig {
  readonly widgets: ResourceType<Widget>;
  readonly env: Readonly<Record<string, string>>;
}

const spans = captureSpans();
const worker = await startWorkerProcess({
  config: defineConfig({
    controllers: [
      defineController({
        name: "widgets",
        for: widgets,
        reconcile: async ({ object, kube }) => {
          await kube.mutateStatus(object, (draft) => {
            draft.status["seen"] = true;
          });
        },
      }),
    ],
  }),
  settings: readSettings({ env }),
  version: "test",
});
process.stdout.write('{"ready":true}\n');
process.once("SIGTERM", () => {
  void worker
    .stop()
    .then(() => process.stdout.write(`${JSON.stringify({ spans: spans.ended() })}\n`));
});
