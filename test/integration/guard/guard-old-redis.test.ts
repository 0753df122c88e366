import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { createGuard } from "@konverge/guard";
import { expect, onTestFinished, test } from "vitest";
import { useQueues } from "../queue/queue-harness.ts";

const harness = useQueues();

/** The real Redis, which says a version in its INFO that is not its own. */
async function startRedisThatSays(majorMinor: string): Promise<string> {
  const target = new URL(harness.url);
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const redis = connect(Number(target.port || 6379), target.hostname);
    for (const [from, to] of [
      [client, redis],
      [redis, client],
    ] as const) {
      sockets.add(from);
      from.on("error", () => to.destroy());
      from.on("close", () => to.destroy());
    }
    client.pipe(redis);
    // As long as before, so that the length before it in the protocol stays right.
    redis.on("data", (bytes) =>
      client.write(
        bytes.toString("latin1").replace(/redis_version:\d\.\d/, `redis_version:${majorMinor}`),
        "latin1",
      ),
    );
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  const url = new URL(target);
  url.host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return url.href;
}

async function openGuard(majorMinor: string) {
  const url = await startRedisThatSays(majorMinor);
  return createGuard({ redis: { url }, prefix: harness.prefix, cluster: "c", workerId: "w" });
}

test("a guard refuses a Redis older than 6.2, and says what is needed", async () => {
  await expect(openGuard("6.1")).rejects.toMatchObject({
    code: "redis_unsupported",
    message: expect.stringMatching(
      /^Redis is version 6\.1\S*; 6\.2 or later is required$/,
    ) as string,
  });
});

test("a guard takes Redis 6.2", async () => {
  await using guard = await openGuard("6.2");
  expect(guard.breaker.mode).toBe("closed");
});
