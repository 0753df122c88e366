import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createExecPlugin } from "./exec-plugin.ts";
import { loadKubeCredentials } from "./kube-credentials.ts";

const cluster = { name: "main", server: "https://127.0.0.1:1" };

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "exec-plugin-"));
});
afterEach(() => rmSync(directory, { recursive: true }));

const plugin = (script: string): string => {
  const path = join(directory, "plugin");
  writeFileSync(path, `#!/bin/sh\n${script}\n`);
  chmodSync(path, 0o755);
  return path;
};

test("stops a hanging plugin and runs it again for the next call", async () => {
  const command = plugin(
    `test -e "${directory}/again" && echo '{"status":{"token":"late"}}' && exit; touch "${directory}/again"; exec sleep 600`,
  );
  const hanging = createExecPlugin({ exec: { command }, cluster, limitMs: 300 });
  await expect(hanging.issue()).rejects.toBeInstanceOf(Error);
  expect(existsSync(join(directory, "again"))).toBe(true);
  expect(await createExecPlugin({ exec: { command }, cluster }).issue()).toEqual({ token: "late" });
});

test("gives a plugin the config of its cluster only if it provides cluster information", async () => {
  const command = plugin(
    `printf %s "$KUBERNETES_EXEC_INFO" > "${directory}/info"; echo '{"status":{}}'`,
  );
  const config = { audience: "east", nested: { n: 1 } };
  const infoOf = async (exec: object) => {
    const kubeconfigText = JSON.stringify({
      "current-context": "main",
      clusters: [
        {
          name: "main",
          cluster: {
            server: "https://127.0.0.1:1",
            extensions: [
              { name: "other", extension: 1 },
              { name: "client.authentication.k8s.io/exec", extension: config },
            ],
          },
        },
      ],
      users: [{ name: "main", user: { exec: { command, ...exec } } }],
      contexts: [{ name: "main", context: { cluster: "main", user: "main" } }],
    });
    await loadKubeCredentials({ kubeconfigText, env: {} }).authorize();
    return (JSON.parse(readFileSync(join(directory, "info"), "utf8")) as { spec: object }).spec;
  };
  expect(await infoOf({ provideClusterInfo: true })).toMatchObject({
    cluster: { server: "https://127.0.0.1:1", config },
  });
  expect(await infoOf({})).not.toHaveProperty("cluster");
});

test("gives no input to a plugin that asks for it", async () => {
  const command = plugin(`read answer; echo "{\\"status\\":{\\"token\\":\\"got-$answer\\"}}"`);
  expect(await createExecPlugin({ exec: { command }, cluster }).issue()).toEqual({ token: "got-" });
});

test.each([
  ["no JSON", "echo hunter2-is-my-token", "the output is not JSON"],
  ["no status", `echo '{"token":"hunter2"}'`, "the output is not an ExecCredential"],
  ["nothing, and fails", "exit 1", "it failed without a message"],
])("P12: names a plugin that prints %s, but not its output", async (_what, script, expected) => {
  const kubeconfigText = JSON.stringify({
    "current-context": "main",
    clusters: [{ name: "main", cluster: { server: "https://127.0.0.1:1" } }],
    users: [{ name: "main", user: { exec: { command: plugin(script) } } }],
    contexts: [{ name: "main", context: { cluster: "main", user: "main" } }],
  });
  const failed = await loadKubeCredentials({ kubeconfigText, env: {} }).authorize().catch(String);
  expect(failed).toContain(expected);
  expect(failed).not.toContain("hunter2");
});
