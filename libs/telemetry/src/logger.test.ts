import { expect, test, vi } from "vitest";
import { createLogger } from "./logger.ts";

function written(log: (logger: ReturnType<typeof createLogger>) => void): string[] {
  const lines: string[] = [];
  const destination = { write: (line: string) => void lines.push(line) };
  log(createLogger({ service: "worker", version: "1.2.3", level: "info", destination }));
  return lines;
}

function refusedByRedis(): Error {
  const command = { name: "hello", args: ["3", "AUTH", "default", "c4n4ry"] };
  return Object.assign(new Error("WRONGPASS"), { command });
}

test("logs source and level, and nothing below the level", () => {
  const lines = written((log) => {
    log.debug({}, "hidden");
    log.child({ controller: "c", traceId: "t" }).info({ writes: 1 }, "reconciled");
  });
  expect(lines.map((line) => JSON.parse(line) as unknown)).toMatchObject([
    {
      level: "info",
      service: "worker",
      version: "1.2.3",
      controller: "c",
      traceId: "t",
      writes: 1,
      msg: "reconciled",
    },
  ]);
});

test("counts the lines beyond the limit of a second, also those of child loggers", async () => {
  const lines: string[] = [];
  const destination = { write: (line: string) => void lines.push(line) };
  const log = createLogger({ service: "worker", version: "1", linesPerSecond: 5, destination });
  for (let at = 0; at < 20; at += 1) log.child({ at }).info({ writes: 1 }, "reconcile done");
  log.error({ err: new Error("rare") }, "reconcile failed");
  const summary = await vi.waitFor(
    () => {
      const found = lines.find((line) => line.includes("log lines omitted"));
      if (found === undefined) throw new Error("no summary yet");
      return JSON.parse(found) as unknown;
    },
    { timeout: 60_000 },
  );
  expect(summary).toMatchObject({ level: "warn", messages: { "reconcile done": 15 }, lines: 15 });
  expect(lines.filter((line) => line.includes('"reconcile done"'))).toHaveLength(6);
  expect(lines.filter((line) => line.includes("reconcile failed"))).toHaveLength(1);
});

test.each([
  { object: { data: { password: "c4n4ry" }, stringData: { password: "c4n4ry" } } },
  { token: "c4n4ry", password: "c4n4ry", authorization: "c4n4ry" },
  { request: { headers: { authorization: "c4n4ry" } } },
  { err: Object.assign(new Error("refused"), { body: "c4n4ry", details: "c4n4ry" }) },
  { err: refusedByRedis() },
  { err: Object.assign(new Error("all nodes failed"), { lastNodeError: refusedByRedis() }) },
])("P12: %j is written without its secret", (fields) => {
  const [line] = written((log) => log.warn(fields, "careless"));
  expect(line).toContain("careless");
  expect(line).not.toContain("c4n4ry");
});
