import { DBOS } from "@dbos-inc/dbos-sdk";
import { servePeer } from "../../peer-scenarios.ts";

await servePeer(async (bodies) => {
  const five = DBOS.registerWorkflow(
    async () => {
      let sum = 0;
      for (let n = 0; n < 5; n++) {
        sum += await DBOS.runStep(() => bodies.five(n), { name: `step-${n}` });
      }
      return sum;
    },
    { name: "five" },
  );
  const approval = DBOS.registerWorkflow(
    async (id) => {
      await DBOS.runStep(() => bodies.prepared(id), { name: "prepare" });
      await DBOS.recv("approve", { timeoutSeconds: 3_600 });
      await DBOS.runStep(() => bodies.approved(id), { name: "continue" });
    },
    { name: "approval" },
  );
  const stall = DBOS.registerWorkflow(
    async (id) => {
      await DBOS.runStep(() => bodies.stall(id), { name: "stall" });
    },
    { name: "stall" },
  );
  DBOS.setConfig({
    name: "bench",
    systemDatabaseUrl: process.env["PEER_URL"],
    logLevel: "error",
    runAdminServer: false,
  });
  await DBOS.launch();
  const start = async (workflow, workflowID) => {
    const handle = await DBOS.startWorkflow(workflow, { workflowID })(workflowID);
    return async () => void (await handle.getResult());
  };
  return {
    startFive: (id) => start(five, id),
    startApproval: (id) => start(approval, id),
    approve: (id) => DBOS.send(id, "yes", "approve"),
    startStall: async (id) => void (await start(stall, id)),
    close: () => DBOS.shutdown(),
  };
});
