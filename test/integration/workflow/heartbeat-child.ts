/** A worker whose step sends heartbeats, in a separate process that a test kills or stops. */
import { openWorkflows } from "@konverge/workflow";
import { makeCopy } from "./heartbeat-sample.ts";

const [url = "", prefix = "", hangs = "yes", leaseMs = "600000"] = process.argv.slice(2);
const workflows = openWorkflows({
  redis: { url },
  prefix,
  leaseMs: Number(leaseMs),
  onError: (error) => process.stderr.write(`${error.message}\n`),
});
const workflow = makeCopy({
  // It hangs at the third row, and leaves the rest to another worker.
  atRow: async (row, ctx) => {
    if (row < 3 || hangs === "no") return;
    process.stdout.write("third row\n");
    await new Promise((resolve) => ctx.signal.addEventListener("abort", resolve));
    process.stdout.write(`${(ctx.signal.reason as Error).name}\n`);
    ctx.signal.throwIfAborted();
  },
});
workflows.work({ workflows: [workflow], workerId: "child" });
process.once("SIGTERM", () => {
  void workflows.close();
});
