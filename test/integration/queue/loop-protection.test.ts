import { resourceVersionChanged } from "@konverge/engine";
import { describe, expect, test } from "vitest";
import { namespace } from "../engine/engine-harness.ts";
import { testServers } from "../kube/kube-servers.ts";
import { until } from "../../support/until.ts";
import { useHistory } from "./history-harness.ts";

/** Of our own writes, or of overwrites of the other manager. */
const ROUNDS = 40;
const OVERWRITES = 6;

describe.each(testServers())("loop protection on $name", (target) => {
  const harness = useHistory(target, "protection.test.konverge.dev");
  const isReported = () =>
    harness.lines.some(({ message }) => message === "reconcile loop detected");
  const countIn = async (controller: string, counter: string) => {
    const minutes = await harness.reader.rollups(controller, 10);
    return minutes.reduce((sum, { counts }) => sum + (counts[counter] ?? 0), 0);
  };
  const wasted = async () => {
    const found = await harness.reader.wastedWrites();
    return found.flatMap(({ minutes }) => minutes).reduce((sum, each) => sum + each, 0);
  };

  test.each(["accept", "report"] as const)(
    "%s: a controller that is triggered by its own writes",
    async (loopProtection) => {
      const { controller } = await harness.start({
        loopProtection,
        predicate: resourceVersionChanged,
        reconcile: async ({ object, kube }) => {
          await kube.mutateStatus(object, (draft) => {
            draft.status["seen"] = Number(draft.status["seen"] ?? 0) + 1;
          });
        },
      });
      await harness.make("own");
      if (loopProtection === "report") {
        await until("the loop is reported", isReported);
        await until("its writes are wasted", async () => (await wasted()) > 0);
        return;
      }
      await until("many writes are in the history", async () => {
        return (await countIn(controller.name, "writes")) >= ROUNDS;
      });
      const before = await countIn(controller.name, "writes");
      await until("more writes are in the history", async () => {
        return (await countIn(controller.name, "writes")) >= before + ROUNDS;
      });
      expect(isReported()).toBe(false);
      expect(await wasted()).toBe(0);
      expect(await harness.reader.loops()).toEqual(new Map());
    },
  );

  test.each(["accept", "report"] as const)(
    "%s: a controller that overwrites another manager",
    async (loopProtection) => {
      const { controller } = await harness.start({
        loopProtection,
        reconcile: async ({ object, kube }) => {
          if (object.spec?.["size"] === 0) return;
          await kube.mutate(object, (draft) => {
            draft.spec = { size: 0 };
          });
        },
      });
      const where = { namespace, name: "size" };
      await harness.make("size", { size: 0 });
      for (let size = 1; size <= OVERWRITES; size++) {
        await harness.client.mutate(harness.widgets, where, (draft) => {
          draft.spec = { size };
        });
        await until("it is overwritten", async () => {
          return (await harness.client.get(harness.widgets, where)).spec?.["size"] === 0;
        });
      }
      await until("the writes are in the history", async () => {
        return (await countIn(controller.name, "writes")) >= OVERWRITES;
      });
      if (loopProtection === "report") {
        await until("each is wasted", async () => (await wasted()) >= OVERWRITES);
        await until("the ownership flips are reported", isReported);
        return;
      }
      // A report is made with the next attempts, and logged before those after them are stored.
      for (const name of ["one", "two", "three"]) {
        const before = await countIn(controller.name, "outcome.done");
        await harness.make(name, { size: 0 });
        await until("the attempt is in the history", async () => {
          return (await countIn(controller.name, "outcome.done")) > before;
        });
      }
      expect(await wasted()).toBe(0);
      expect(isReported()).toBe(false);
      expect(await harness.reader.loops()).toEqual(new Map());
    },
  );
});
