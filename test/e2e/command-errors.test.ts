import { expect, onTestFinished, test, vi } from "vitest";
import { runWithClient, type Asking } from "../../apps/cli/src/ask/run-with-client.ts";
import { useQueues } from "../integration/queue/queue-harness.ts";
import { clustersKey, controllersKey } from "../../libs/queue/src/keys/queue-names.ts";

const queues = useQueues();

/** Reads an object. Controllers named `unreadable-*` fail with `internal`, because their entries in Redis are no JSON. */
type Read = (controller: string, cluster?: string) => Promise<unknown>;

/** Runs a command that reads controllers. Returns the error that it throws, or the line that it prints. */
async function run(work: (read: Read) => Promise<unknown>): Promise<unknown> {
  await queues.redis.sadd(clustersKey(queues.prefix), "default");
  for (const name of ["unreadable-1", "unreadable-2"]) {
    await queues.redis.hset(controllersKey(queues.prefix, "default"), name, name);
  }
  const listeners = (["SIGINT", "SIGTERM"] as const).map(
    (signal) => [signal, process.listeners(signal)] as const,
  );
  vi.stubEnv("KONVERGE_REDIS_URL", queues.apiUrl);
  vi.stubEnv("KONVERGE_PREFIX", queues.prefix);
  const printed: string[] = [];
  vi.spyOn(process.stderr, "write").mockImplementation((chunk) => {
    printed.push(String(chunk));
    return true;
  });
  vi.spyOn(process, "exit").mockImplementation(() => {
    throw new Error(printed.join(""));
  });
  onTestFinished(() => {
    vi.unstubAllEnvs();
    vi.restoreAllMocks();
    for (const [signal, saved] of listeners) {
      process.removeAllListeners(signal);
      for (const listener of saved) process.on(signal, listener);
    }
  });
  const command = async ({ client }: Asking) => {
    await work(
      async (controller, cluster = "default") =>
        await client.objects.get({ cluster, controller, namespace: "demo", name: "blue" }),
    );
  };
  return await runWithClient({}, command).catch((error: unknown) => error);
}
const messageOf = (error: unknown) => (error instanceof Error ? error.message : error);

test("prints the error that ended a command, not one that it handled before", async () => {
  const ended = await run(async (read) => {
    await expect(read("unreadable-1")).rejects.toMatchObject({ code: "internal" });
    await read("node-pool", "missing");
  });
  expect(messageOf(ended)).toMatch(/^konverge: cluster "missing" not found/);
});

test("throws the error behind the internal response that ended a command", async () => {
  const ended = await run(async (read) => {
    await expect(read("unreadable-1")).rejects.toMatchObject({ code: "internal" });
    await read("unreadable-2");
  });
  expect(ended).toBeInstanceOf(SyntaxError);
  expect(messageOf(ended)).toContain("unreadable-2");
});
