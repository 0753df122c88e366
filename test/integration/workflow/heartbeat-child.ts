/** A worker whose step sends heartbeats, in a separate process that a test kills or stops. */
import { openWorkflows } from "@konverge/workflow";
import { makeCopy } from "./heartbeat-sample.ts";

const [url = "", prefix = ""] = process.argv.slice(2);
const workflows = openWorkflows({
  redis: { url },
  prefix,
  leaseMs: 600_000,
  onError: (error) => process.stderr.write(`${error.message}\n`),
});
const workflow = makeCopy({
  // The rest is left to another worker.
  atRow: async (row, ctx) => {
    if (row < 3) return;
    process.stdout.write("third row\n");
    await new Promise((resolve) => ctx.signal.addEventListener("abort", resolve));
    process.stdout.write(`${(ctx.signal.reason as Error).name}\n`);
    ctx.signal.throwIfAborted();
  },
});
workflows.work({ workflows: [workflow], workerId: "child" });
// While a body is at work, it sends heartbeats without a new position.
process.once("SIGTERM", () => {
  void workflows.close();
});
