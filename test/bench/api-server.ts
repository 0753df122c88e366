import { serve } from "@hono/node-server";
import { startApi } from "@konverge/api";
import { readSettings } from "@konverge/contracts";
import { Queue } from "bullmq";
import { Hono } from "hono";
import { sayReadyUntilStdinEnds } from "./peer-process.ts";

/** One side of the suite `api`: Konverge's API, or a minimal server with Hono and BullMQ. */
const [side, redisUrl = "", port = ""] = process.argv.slice(2);

if (side === "ours") {
  const settings = readSettings({ env: {} });
  const api = await startApi({
    settings: {
      ...settings,
      redisUrl,
      prefix: "bench",
      apiPort: Number(port),
      apiRateLimit: 1e9,
      logLevel: "warn",
    },
    version: "bench",
  });
  await sayReadyUntilStdinEnds();
  await api.stop();
} else {
  const { hostname, port: redisPort } = new URL(redisUrl);
  const connection = { host: hostname, port: Number(redisPort) };
  const queue = new Queue("node-pool", { connection, prefix: "bare" });
  const app = new Hono();
  app.post("/v1/reconciles", async (context) => {
    const job = await queue.add("reconcile", await context.req.json());
    return context.json({ id: job.id }, 202);
  });
  app.post("/v1/reconciles/batch", async (context) => {
    const { items } = await context.req.json<{ items: unknown[] }>();
    const jobs = await queue.addBulk(items.map((data) => ({ name: "reconcile", data })));
    return context.json({ items: jobs.map(({ id }) => ({ id })) });
  });
  const server = serve({ fetch: app.fetch, hostname: "127.0.0.1", port: Number(port) });
  await new Promise((resolve) => server.once("listening", resolve));
  await sayReadyUntilStdinEnds();
  server.close();
  await queue.close();
}
