import { fileURLToPath } from "node:url";
import { Client, Connection } from "@temporalio/client";
import { NativeConnection, Runtime, Worker } from "@temporalio/worker";
import { servePeer } from "../../peer-scenarios.ts";

const { address, namespace } = JSON.parse(process.env["PEER_URL"] ?? "{}");
const taskQueue = "bench";

await servePeer(async (activities) => {
  Runtime.install({ logger: { ...console, trace() {}, debug() {}, info() {}, log() {} } });
  const worker = await Worker.create({
    connection: await NativeConnection.connect({ address }),
    namespace,
    taskQueue,
    workflowsPath: fileURLToPath(new URL("temporal-workflows.js", import.meta.url)),
    activities,
  });
  const running = worker.run();
  const { workflow } = new Client({ connection: await Connection.connect({ address }), namespace });
  const start = async (name, workflowId) => {
    const handle = await workflow.start(name, { taskQueue, workflowId, args: [workflowId] });
    return async () => void (await handle.result());
  };
  return {
    startFive: (id) => start("five", id),
    startApproval: (id) => start("approval", id),
    approve: (id) => workflow.getHandle(id).signal("approve"),
    startStall: async (id) => void (await start("stall", id)),
    close: async () => {
      worker.shutdown();
      await running;
    },
  };
});
