import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { useQueues } from "../integration/queue/queue-harness.ts";
import { runCommand } from "./cli-runner.ts";

const harness = useQueues();
const konverge = (...args: string[]) =>
  runCommand(args, {
    KONVERGE_REDIS_URL: harness.apiUrl,
    KONVERGE_PREFIX: harness.prefix,
    KONVERGE_AUDIT_KEYS: "k".repeat(32),
  });

test("verifies and exports the audit log, and finds a removed entry in Redis and in a file", async () => {
  for (const name of ["one", "two", "three"]) {
    const made = await konverge("token", "create", name, "--role", "viewer", "--by", "ada");
    expect(made.code).toBe(0);
  }
  const anchors = await konverge("audit", "verify", "-o", "name");
  expect(anchors).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^changes:3:hmac-sha256:\S+\n$/) as string,
  });
  const folder = mkdtempSync(join(tmpdir(), "audit-"));
  const [file, known] = [join(folder, "audit.jsonl"), join(folder, "anchors")];
  writeFileSync(known, anchors.stdout);
  const exported = (await konverge("audit", "export")).stdout;
  const lines = exported.trimEnd().split("\n");
  writeFileSync(file, exported);
  const whole = await konverge("audit", "verify", "--file", file, "--anchors", known);
  expect(whole).toMatchObject({ code: 0, stdout: expect.stringMatching(/no fault/) as string });
  expect(await konverge("audit", "export", "--after", known)).toMatchObject({ stdout: "" });
  writeFileSync(file, `${lines[0]}\n${lines[2]}\n`);
  expect(await konverge("audit", "verify", "--file", file)).toMatchObject({
    code: 1,
    stdout: expect.stringMatching(/changes .* removed 2 /) as string,
  });
  const { redis, prefix } = harness;
  const [, second] = await redis.xrange(`${prefix}:audit`, "-", "+");
  await redis.xdel(`${prefix}:audit`, second?.[0] ?? "");
  expect(await konverge("audit", "verify")).toMatchObject({
    code: 1,
    stdout: expect.stringMatching(/changes .* removed 2 /) as string,
  });
});
