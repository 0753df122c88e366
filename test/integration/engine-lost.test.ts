import { createHistoryWriter } from "@konverge/queue";
import { describe, expect, test } from "vitest";
import { LEASE_MS, namespace, useEngines } from "./engine-harness.ts";
import { eventsAbout } from "./history-harness.ts";
import { testServers } from "./kube-servers.ts";
import { hold, until, workOn } from "./queue-harness.ts";

describe.each(testServers())("attempts that never end, on $name", (target) => {
  const group = "lost.test.konverge.dev";
  const engines = useEngines(target, group);

  test("each is counted and told; from the second in a row on the object has an Event that says so", async () => {
    const { queues, Widgets } = engines;
    const name = "widgets-poison";
    const key = {
      controller: name,
      cluster: "default",
      resource: Widgets.resource,
      group,
      namespace,
      name: "poison",
    };
    await engines.make("poison");
    for (const [index, workerId] of ["first", "second"].entries()) {
      const queue = queues.open({ controller: name, leaseMs: LEASE_MS });
      const never = hold();
      const worker = workOn(queue, () => never.wait().then(() => ({ kind: "done" })), { workerId });
      if (index === 0) await queue.request(key, { kind: "http" });
      await until(`${workerId} has it`, () => worker.started.length === 1);
      await worker.kill();
    }

    const history = createHistoryWriter({
      redis: { url: queues.url },
      cluster: "default",
      prefix: queues.prefix,
      onError: () => undefined,
      budgetBytes: 10_000_000,
    });
    engines.onStopped(() => history.close());
    const { lines, metrics } = await engines.start(
      { name, reconcile: async () => undefined },
      { history },
    );
    const line = await until("it is told", () =>
      lines.find(({ message }) => message === "an attempt never ended"),
    );
    expect(line).toMatchObject({
      level: "warn",
      fields: { controller: name, namespace, name: "poison", inARow: 2 },
    });
    const text = await metrics.text();
    expect(text).toContain(`konverge_reconcile_lost_total{controller="${name}"} 1`);
    const [event] = await until("the Event", async () => {
      const events = await eventsAbout(engines.client, "poison");
      return events.length > 0 && events;
    });
    expect(event).toMatchObject({
      reason: "AttemptsLost",
      message: expect.stringContaining("2 attempts in a row never ended"),
    });
  });
});
