/** An embedded API server in its own process, which can be killed and can inject faults on request. Prints its URL. */
import { createApiServer } from "@konverge/apiserver";
import { seededRandom } from "../../apps/demo/src/load/seeded-random.ts";

const [, , dataDir = "", seed = "1"] = process.argv;
const server = await createApiServer({ dataDir, random: seededRandom(Number(seed)) });
process.on("message", (order: { readonly faults: boolean }) => {
  server.clearFaults();
  if (!order.faults) return;
  const resources = ["configmaps", "counters.chaos.konverge.dev", "plains.chaos.konverge.dev"];
  // The response to an applied write is lost.
  server.inject({
    resources,
    verbs: ["patch"],
    probability: 0.1,
    effect: { kind: "drop", when: "after" },
  });
  server.inject({ resources, probability: 0.03, effect: { kind: "answer", code: 503 } });
  server.inject({ resources, probability: 0.03, effect: { kind: "answer", code: 409 } });
  server.inject({
    resources,
    verbs: ["get", "patch"],
    probability: 0.05,
    effect: { kind: "latency", ms: 200 },
  });
});
process.stdout.write(`${server.url}\n`);
