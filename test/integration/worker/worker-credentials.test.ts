import { chmodSync, existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { defineController, type Controller } from "@konverge/engine";
import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../../support/until.ts";
import { useWorkers } from "./worker-harness.ts";

const workers = useWorkers("credentials.test.konverge.dev");
const namespace = "default";

let folder = "";
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "konverge-plugin-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** Records each start, and fails while the file `down` exists. Its credentials expire immediately. */
function writePlugin(): {
  readonly starts: () => number;
  readonly down: string;
  kubeconfig: string;
} {
  const command = join(folder, "plugin");
  const [down, starts] = [join(folder, "down"), join(folder, "starts")];
  const status = '{"token":"t","expirationTimestamp":"2020-01-01T00:00:00Z"}';
  const script = `#!/bin/sh
echo start >> "${starts}"
if [ -e "${down}" ]; then echo "the identity provider is down" >&2; exit 1; fi
echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":${status}}'
`;
  writeFileSync(command, script);
  chmodSync(command, 0o755);
  const server = /server: (\S+)/.exec(workers.server.kubeconfig)?.[1];
  const exec = { apiVersion: "client.authentication.k8s.io/v1", command };
  return {
    down,
    starts: () => (existsSync(starts) ? readFileSync(starts, "utf8").split("\n").length - 1 : 0),
    kubeconfig: JSON.stringify({
      "current-context": "main",
      clusters: [{ name: "main", cluster: { server } }],
      users: [{ name: "main", user: { exec } }],
      contexts: [{ name: "main", context: { cluster: "main", user: "main" } }],
    }),
  };
}

/** Copies `spec.n` to the status, with at least one API call for each attempt. */
const copier = (attempts: string[]): Controller =>
  defineController({
    name: "widgets",
    for: workers.Widgets,
    reconcile: async ({ object, kube }) => {
      attempts.push(object.metadata.name);
      await kube.mutateStatus(object, (draft) => {
        draft.status["n"] = object.spec?.["n"] ?? null;
      });
    },
  });

const names = Array.from({ length: 30 }, (_, n) => `w${n}`);
const converge = async (n: number): Promise<void> => {
  for (const name of names) {
    await workers.client.mutate(workers.Widgets, { namespace, name }, (draft) => {
      draft.spec = { n };
    });
  }
  await until(`all objects have ${n}`, async () => {
    const { items } = await workers.client.list(workers.Widgets, { namespace });
    return items.every(({ status }) => status?.["n"] === n);
  });
};

// A worker with the role work calls the API server only in its attempts.
test.each(["all", "work"] as const)(
  "a worker (%s) whose credential plugin breaks takes no jobs, and no attempt fails",
  async (role) => {
    const plugin = writePlugin();
    const [goodAttempts, badAttempts]: [string[], string[]] = [[], []];
    const good = await workers.start([copier(goodAttempts)]);
    const bad = await workers.start([copier(badAttempts)], {
      kubeconfig: { text: plugin.kubeconfig },
      role,
    });
    for (const name of names) {
      await workers.client.create(workers.Widgets, {
        metadata: { namespace, name },
        spec: { n: 0 },
      });
    }
    await converge(1);

    const startsBefore = plugin.starts();
    const brokenAtMs = performance.now();
    writeFileSync(plugin.down, "");
    let n = 2;
    const change = await until("the worker reports it", async () => {
      await converge(n++);
      return bad.lines.find(({ message }) => message === "worker's API server access changed");
    });
    expect(change.fields).toMatchObject({
      health: "unauthorized",
      err: { message: expect.stringContaining("the identity provider is down") },
    });
    expect(bad.ready).toBe(false);
    await until("its work is paused", () =>
      bad.lines.some(({ message }) => message === "work paused, API server unavailable"),
    );
    const taken = badAttempts.length;
    for (let times = 0; times < 3; times++) await converge(n++);
    // Jobs that it had taken before the pause.
    expect(badAttempts.length - taken).toBeLessThanOrEqual(names.length);
    // One start when it broke, then after pauses of 1, 2, 4, 8, 16, 30, 30, ... s.
    const longestPauses = (performance.now() - brokenAtMs) / 30_000;
    expect(plugin.starts() - startsBefore).toBeLessThan(8 + longestPauses);

    rmSync(plugin.down);
    await until("it has access again", () => bad.ready);
    await until("it takes jobs again", async () => {
      const before = badAttempts.length;
      await converge(n++);
      return badAttempts.length > before;
    });
    for (const { lines } of [good, bad]) {
      expect(lines.filter(({ message }) => message === "reconcile failed")).toEqual([]);
    }
  },
);

test("a worker without credentials at its start ends with the plugin's message", async () => {
  const plugin = writePlugin();
  writeFileSync(plugin.down, "");
  await expect(
    workers.start([copier([])], { kubeconfig: { text: plugin.kubeconfig } }),
  ).rejects.toMatchObject({
    code: "kube_unreachable",
    message: expect.stringContaining("the identity provider is down"),
  });
  rmSync(plugin.down);
});
