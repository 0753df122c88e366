import { readFileSync } from "node:fs";
import { openQueueAccess } from "@konverge/api";
import { expect, onTestFinished, test } from "vitest";
import { useQueues } from "../integration/queue/queue-harness.ts";
import { runCommand } from "./cli-runner.ts";

const harness = useQueues();
const konverge = (...args: string[]) =>
  runCommand(["token", ...args], {
    KONVERGE_REDIS_URL: harness.apiUrl,
    KONVERGE_PREFIX: harness.prefix,
  });

test("creates, lists and revokes a token, with audit entries", async () => {
  const { prefix } = harness;
  const onError = () => undefined;
  const access = openQueueAccess({ redis: harness.apiTarget, prefix, onError });
  onTestFinished(() => access.close());
  const flags = ["--role", "operator", "-n", "shop", "_", "--expires", "90d", "--by", "ada"];
  const made = await konverge("create", "ci", ...flags);
  expect(made).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^kvg_\w{12}_[\w-]{43}\n$/),
  });
  const token = made.stdout.trim();
  expect(made.stderr).not.toContain(token);
  expect(await access.tokens.find(token)).toMatchObject({
    name: "ci",
    role: "operator",
    scope: { namespaces: ["shop", "_"] },
    createdBy: "ada",
  });
  const listed = await konverge("list");
  expect(listed.stdout).toMatch(
    /^NAME .*\nci +\w{12} +operator +namespaces shop, _ +ada .* never\n$/,
  );
  expect(await konverge("revoke", "ci", "--by", "ada")).toMatchObject({ code: 0, stderr: "" });
  expect(await access.tokens.find(token)).toBeUndefined();
  expect(await konverge("revoke", "ci")).toMatchObject({ code: 3, stdout: "" });
  const { items } = await access.audit.read({ limit: 10 }, () => true);
  expect(items.map(({ action, by }) => [action, by])).toEqual([
    ["token.revoke", "ada"],
    ["token.create", "ada"],
  ]);
});

test("reports invalid token fields by option name", async () => {
  const wrong = await konverge("create", "a b", "--role", "viewer", "--expires", "soon");
  expect(wrong).toMatchObject({ code: 2, stdout: "" });
  expect(wrong.stderr).toMatch(/^konverge: --expires: .*; <name>: .*\n$/);
  expect(await konverge("create", "ci", "--role", "king")).toMatchObject({ code: 2 });
});

test("docs/security.md: the commands create, list and revoke a token", async () => {
  const [, block = ""] = /```sh\n(.*?)```/s.exec(readFileSync("docs/security.md", "utf8")) ?? [];
  const commands = [...block.matchAll(/^konverge token (.*?)(?: +#.*)?$/gm)];
  expect(block.trim().split("\n")).toHaveLength(commands.length);
  const said = [];
  for (const [, words = ""] of commands) {
    const { code, stdout, stderr } = await konverge(...words.split(" "));
    expect(code, stderr).toBe(0);
    said.push(stdout);
  }
  expect(said).toEqual([
    expect.stringMatching(/^kvg_/),
    expect.stringMatching(/^NAME .*\nci .* operator +namespaces shop /),
    expect.stringMatching(/^revoked "ci"/),
  ]);
});
