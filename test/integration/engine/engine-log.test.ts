import { TerminalError } from "@konverge/core";
import { Secret } from "@konverge/kube/kinds";
import { describe, expect, test } from "vitest";
import { watchCommands } from "../../contract/watch-commands.ts";
import { until } from "../../support/until.ts";
import { testServers } from "../kube/kube-servers.ts";
import { hold } from "../queue/queue-harness.ts";
import { namespace, useEngines, type StartedEngine } from "./engine-harness.ts";

const CANARY = "c4n4ry-in-a-log-line";
interface Line {
  readonly level: string;
  readonly message: string;
  readonly fields?: object;
}

describe.each(testServers())("logs of attempts on $name", (target) => {
  const harness = useEngines(target, "log.test.konverge.dev");

  const logOf = async ({ records }: StartedEngine, name: string) => {
    const [last] = await until(`${name} has ended`, async () => {
      const all = await records(name);
      return all.length > 0 && all;
    });
    return last?.parsed["log"] as readonly Line[] | undefined;
  };

  test("a record has the handler's lines with bound fields, and those of level debug after a failure", async () => {
    const started = await harness.start({
      reconcile: async ({ log, object }) => {
        const child = log.child({ pool: object.metadata.name });
        child.debug({ step: 1 }, "comparing");
        child.info({ err: new RangeError("too small") }, "resizing");
        if (object.metadata.name === "failing") throw new TerminalError("no");
      },
    });
    await harness.make("failing");
    await harness.make("good");
    const resizing = (pool: string) => ({
      level: "info",
      message: "resizing",
      fields: { pool, err: "RangeError: too small" },
    });
    expect(await logOf(started, "good")).toMatchObject([resizing("good")]);
    expect(await logOf(started, "failing")).toMatchObject([
      { level: "debug", message: "comparing", fields: { pool: "failing", step: 1 } },
      resizing("failing"),
    ]);
  });

  test("P12: a record has no value of a Secret that the attempt read after the line", async () => {
    await harness.client.create(Secret, {
      metadata: { name: "logged", namespace },
      stringData: { password: CANARY },
    });
    const started = await harness.start({
      reconcile: async ({ log, kube }) => {
        log.info({ password: "x", note: CANARY }, `before ${CANARY}`);
        await kube.get(Secret, { name: "logged", namespace });
        log.info({}, `after ${CANARY}`);
      },
    });
    await harness.make("secretive");
    const log = await logOf(started, "secretive");
    expect(log).toMatchObject([
      { message: "before (redacted)", fields: { password: "(redacted)", note: "(redacted)" } },
      { message: "after (redacted)" },
    ]);
    await harness.client.delete(Secret, { name: "logged", namespace });
  });

  test("an attempt that logs nothing stores no line and sends no command for a log", async () => {
    using watched = await watchCommands(harness.queues.url);
    const started = await harness.start({ reconcile: async () => undefined });
    await harness.make("silent");
    expect(await logOf(started, "silent")).toBeUndefined();
    const own = watched.commands.filter(({ args }) =>
      args.some((arg) => arg.startsWith(harness.queues.prefix)),
    );
    expect(own.length).toBeGreaterThan(0);
    expect(own.filter(({ args }) => args.some((arg) => arg.includes("/log/")))).toEqual([]);
  });

  test("the log of a running attempt is stored", async () => {
    const never = hold();
    const { key, queue } = await harness.start({
      reconcile: async ({ log }) => {
        log.debug({ disk: 3 }, "waiting for the disk");
        await never.wait();
      },
    });
    await harness.make("slow");
    const running = await until("the line is stored while the attempt runs", () =>
      queue.runningLog(key("slow")),
    );
    expect([running.epoch, JSON.parse(running.lines)]).toMatchObject([
      1,
      [{ level: "debug", message: "waiting for the disk", fields: { disk: 3 } }],
    ]);
    never.release();
  });
});
