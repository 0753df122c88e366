import { createHistoryReader, createHistoryWriter } from "@konverge/queue";
import { formatKey } from "@konverge/core";
import { describe, expect, test } from "vitest";
import { LEASE_MS, namespace, useEngines } from "./engine-harness.ts";
import { eventsAbout } from "../queue/history-harness.ts";
import { testServers } from "../kube/kube-servers.ts";
import { hold, workOn } from "../queue/queue-harness.ts";
import { until } from "../../support/until.ts";
import { withoutHome } from "../../support/without-home.ts";

describe.each(testServers())("attempts that never end, on $name", (target) => {
  const group = "lost.test.konverge.dev";
  const engines = useEngines(target, group);

  // Shards concern Redis only.
  test.each(target.name.startsWith("embedded") ? [1, 2] : [1])(
    "counts, logs and indexes each one, with an Event from the second consecutive one (%d shards)",
    async (shards) => {
      const { queues, Widgets } = engines;
      const name = `widgets-poison-${shards}`;
      const open = () => queues.open({ controller: name, leaseMs: LEASE_MS, shards });
      const key = {
        controller: name,
        cluster: "default",
        resource: Widgets.resource,
        group,
        namespace,
        name: `poison-${shards}`,
      };
      await engines.make(key.name);
      for (const [index, workerId] of ["first", "second"].entries()) {
        const queue = open();
        const never = hold();
        const worker = workOn(queue, () => never.wait().then(() => ({ kind: "done" })), {
          workerId,
        });
        if (index === 0) await queue.request(key, { kind: "http" });
        await until(`${workerId} has it`, () => worker.started.length === 1);
        await worker.kill();
      }

      const where = {
        redis: queues.target,
        cluster: "default",
        prefix: queues.prefix,
        onError: () => undefined,
      };
      const history = createHistoryWriter({ ...where, budgetBytes: 10_000_000, shards });
      const reader = createHistoryReader(where);
      engines.onStopped(() => Promise.all([history.close(), reader.close()]));
      const { lines, metrics } = await engines.start(
        { name, reconcile: async () => undefined },
        { history, queueFor: open },
      );
      const line = await until("it is logged", () =>
        lines.find(({ message }) => message === "attempt lost"),
      );
      expect(line).toMatchObject({
        level: "warn",
        fields: { controller: name, namespace, name: key.name, consecutive: 2 },
      });
      const text = await metrics.text();
      expect(withoutHome(text)).toContain(`konverge_reconcile_lost_total{controller="${name}"} 1`);
      const [event] = await until("the Event", async () => {
        const events = await eventsAbout(engines.client, key.name);
        return events.length > 0 && events;
      });
      expect(event).toMatchObject({
        reason: "AttemptsLost",
        message: expect.stringContaining("2 consecutive attempts were lost"),
      });
      const found = await until("it is in the index", async () => {
        const { items } = await reader.search({ limit: 5, outcome: "lost" });
        return items.find(({ epoch }) => epoch === 2);
      });
      expect(found).toMatchObject({ key: formatKey(key), outcome: "lost", worker: "second" });
    },
  );
});
