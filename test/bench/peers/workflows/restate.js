import * as restate from "@restatedev/restate-sdk";
import * as clients from "@restatedev/restate-sdk-clients";
import { servePeer } from "../../peer-scenarios.ts";

const { ingress, admin } = JSON.parse(process.env["PEER_URL"] ?? "{}");
const port = Number(process.env["PEER_PORT"]);

await servePeer(async (bodies) => {
  const five = restate.workflow({
    name: "five",
    handlers: {
      run: async (ctx) => {
        let sum = 0;
        for (let n = 0; n < 5; n++) sum += await ctx.run(`step-${n}`, () => bodies.five(n));
        return sum;
      },
    },
  });
  const approval = restate.workflow({
    name: "approval",
    handlers: {
      run: async (ctx) => {
        await ctx.run("prepare", () => bodies.prepared(ctx.key));
        await ctx.promise("approve");
        await ctx.run("continue", () => bodies.approved(ctx.key));
      },
      approve: async (ctx) => void (await ctx.promise("approve").resolve("yes")),
    },
  });
  const stall = restate.workflow({
    name: "stall",
    handlers: { run: (ctx) => ctx.run("stall", () => bodies.stall(ctx.key)) },
  });
  await restate.serve({ services: [five, approval, stall], port, logger: () => undefined });
  const response = await fetch(`${admin}/deployments`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ uri: `http://127.0.0.1:${port}`, force: true }),
  });
  if (!response.ok) throw new Error(`registering the deployment: ${await response.text()}`);
  const client = clients.connect({ url: ingress });
  const start = async (workflow, id) => {
    const started = client.workflowClient(workflow, id);
    await started.workflowSubmit();
    return async () => void (await started.workflowAttach());
  };
  return {
    startFive: (id) => start(five, id),
    startApproval: (id) => start(approval, id),
    approve: (id) => client.workflowClient(approval, id).approve(),
    startStall: async (id) => void (await start(stall, id)),
    close: async () => undefined,
  };
});
