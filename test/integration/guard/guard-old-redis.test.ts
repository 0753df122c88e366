import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { createGuard } from "@konverge/guard";
import { expect, onTestFinished, test } from "vitest";
import { useQueues } from "../queue/queue-harness.ts";

const harness = useQueues();

/** A proxy to the real Redis that changes the version in INFO. */
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
    // Of equal length, so that the length prefix of the protocol stays valid.
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

test("a guard rejects a Redis older than 6.2 and names the required version", async () => {
  await expect(openGuard("6.1")).rejects.toMatchObject({
    code: "redis_unsupported",
    message: expect.stringMatching(
      /^Redis is version 6\.1\S*; 6\.2 or later is required$/,
    ) as string,
  });
});

test("a guard accepts Redis 6.2", async () => {
  await using guard = await openGuard("6.2");
  expect(guard.breaker.mode).toBe("closed");
});
