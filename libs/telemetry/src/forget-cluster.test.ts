import { expect, test } from "vitest";
import { createMetrics } from "./metrics.ts";

test("removes all series of a cluster, and none of the others", async () => {
  const metrics = createMetrics({ version: "1" });
  const clusters = ["east", "west"];
  const slo = { thresholdMs: 1_000, objective: 0.99 };
  for (const name of clusters) {
    const of = metrics.ofCluster(name);
    const end = of.addController("widgets", { concurrency: 4, timeoutMs: 1_000, slo });
    of.attemptFinished({
      controller: "widgets",
      outcome: "retry",
      durationMs: 5,
      queueMs: 5,
      rateLimitMs: 0,
      laneMs: 0,
      convergence: {
        queue: 1,
        pause: 1,
        outage: 1,
        retry: 1,
        contention: 1,
        token: 1,
        lane: 1,
        handler: 1,
      },
      slo: "bad",
      conflicts: 1,
      writes: 1,
      apiCalls: 1,
      retried: true,
      timedOut: false,
      fenced: false,
    });
    of.apiCall({ verb: "get", host: name, code: 200, seconds: 1, waitedSeconds: 0 });
    end();
  }
  const linesOf = async (name: string) =>
    (await metrics.text()).split("\n").filter((line) => line.includes(`cluster="${name}"`));
  const [before] = [await linesOf("east")];
  expect(before.length).toBeGreaterThan(50);
  expect(await linesOf("west")).toHaveLength(before.length);
  await metrics.forgetCluster("west");
  expect(await linesOf("west")).toEqual([]);
  expect(await linesOf("east")).toEqual(before);
});
