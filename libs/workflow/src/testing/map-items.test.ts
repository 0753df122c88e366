import { expect, test } from "vitest";
import { TerminalError } from "@konverge/core";
import { defineWorkflow, type MapOptions } from "../define/define-workflow.ts";
import { testWorkflow } from "./test-workflow.ts";

const HOSTS = ["a", "b", "c", "d", "e"];

/** Upgrades hosts; those in `bad` fail. */
function upgrade(bad: readonly string[], options?: MapOptions) {
  const log: string[] = [];
  let running = 0;
  let most = 0;
  const program = defineWorkflow("upgrade", { version: 1 }, async (w) => {
    const outcomes = await w.map(
      HOSTS,
      async (host, index) => {
        await w.step(`drain ${host}`, async () => undefined);
        return await w.step(
          `upgrade ${host}`,
          async () => {
            running += 1;
            most = Math.max(most, running);
            await new Promise((resolve) => setImmediate(resolve));
            running -= 1;
            if (bad.includes(host)) throw new TerminalError(`${host} is broken`);
            return index;
          },
          { undo: () => void log.push(`undo ${host}`) },
        );
      },
      options,
    );
    return outcomes.map(({ status }, at) => `${HOSTS[at]} ${status}`);
  });
  return { program, log, most: () => most };
}

test.each([{ replayEveryStep: false }, { replayEveryStep: true }])(
  "maps items with a limit, and reports tolerated failures in the order of the items, with %o",
  async (mode) => {
    const { program, log, most } = upgrade(["b", "d"], { concurrency: 2, toleratedFailures: 2 });
    const t = testWorkflow(program, undefined as never, mode);
    const result = ["a fulfilled", "b rejected", "c fulfilled", "d rejected", "e fulfilled"];
    expect(await t.settle()).toMatchObject({ status: "done", result });
    expect(most()).toBeLessThanOrEqual(2);
    expect(log).toEqual([]);
    await t.replay();
  },
);

test("a failure beyond the tolerated ones starts no further item, and undoes those that ran", async () => {
  const { program, log } = upgrade(["b"], { concurrency: 1 });
  const t = testWorkflow(program, undefined as never);
  expect(await t.settle()).toMatchObject({
    status: "failed",
    error: { code: "step_failed", message: 'step "upgrade b" failed: b is broken' },
  });
  expect(t.bodies.filter((body) => body.startsWith("upgrade"))).toEqual(["upgrade a", "upgrade b"]);
  expect(log).toEqual(["undo b", "undo a"]);
});

test("a mistake in the code is not tolerated", async () => {
  const calls: string[] = [];
  const program = defineWorkflow("mistake", { version: 1 }, async (w) => {
    await w.map(
      HOSTS,
      async (host) => {
        calls.push(host);
        await Promise.resolve();
        throw new TypeError("not a function");
      },
      { concurrency: 1, toleratedFailures: Infinity },
    );
  });
  const run = await testWorkflow(program, undefined as never).settle();
  expect(run.status).not.toBe("done");
  expect(new Set(calls)).toEqual(new Set(["a"]));
});

test.each([{ concurrency: 0 }, { concurrency: 1.5 }, { toleratedFailures: -1 }])(
  "rejects %o",
  async (options) => {
    const { program } = upgrade([], options);
    const run = await testWorkflow(program, undefined as never).settle();
    expect(run.status).not.toBe("done");
  },
);
