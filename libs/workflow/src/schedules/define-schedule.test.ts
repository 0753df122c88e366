import { expect, test } from "vitest";
import { z } from "zod";
import { isKonvergeError } from "@konverge/core";
import { defineWorkflow } from "../define/define-workflow.ts";
import { defineSchedule, type ScheduleOptions } from "./define-schedule.ts";

const backup = defineWorkflow(
  "backup",
  { version: 1, input: z.object({ name: z.string() }) },
  async (_w, { name }) => name,
);

test("reports all issues together", () => {
  const define = () =>
    defineSchedule("Nightly!", {
      cron: "61 * * * *",
      workflow: backup,
      input: { name: 7 as unknown as string },
      overlap: "attach" as "skip",
      catchUp: "1s",
      jitter: "soon" as "1s",
    });
  try {
    define();
    expect.unreachable();
  } catch (error) {
    if (!isKonvergeError(error)) throw error;
    expect(error.code).toBe("invalid_config");
    expect(error.issues.map(({ pointer }) => pointer)).toEqual([
      "/name",
      "/cron",
      "/input",
      "/overlap",
      "/catchUp",
      "/jitter",
    ]);
  }
});

test.each([
  [{}, "set either cron"],
  [{ cron: "0 3 * * *", every: "1h" }, "set either cron"],
  [{ every: "10ms" }, "at least 1s"],
  [{ every: "1h", timeZone: "Europe/Berlin" }, "timeZone applies to cron"],
  [{ cron: "0 3 * * *", timeZone: "Europe/Nowhere" }, "Europe/Nowhere"],
] as const)("refuses %j", (when, message) => {
  const define = () =>
    defineSchedule("nightly", { ...when, workflow: backup, input: { name: "a" } });
  expect(define).toThrow(message);
});

test("different times have different texts", () => {
  const whens: Pick<ScheduleOptions<unknown>, "cron" | "every" | "timeZone">[] = [
    { cron: "0 3 * * *" },
    { cron: "0 4 * * *" },
    { cron: "0 3 * * *", timeZone: "Europe/Berlin" },
    { every: "1h" },
  ];
  const texts = whens.map(
    (when) =>
      defineSchedule("nightly", { ...when, workflow: backup, input: { name: "a" } }).times.text,
  );
  expect(new Set(texts).size).toBe(texts.length);
});
