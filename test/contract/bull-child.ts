/** A BullMQ worker in a process of its own that starts a job and never ends it, to be killed by a test. */
import { Worker } from "bullmq";

const { url, prefix, name } = JSON.parse(process.argv[2] ?? "{}") as BullChildConfig;

export interface BullChildConfig {
  readonly url: string;
  readonly prefix: string;
  readonly name: string;
}

const worker = new Worker(
  name,
  async (job) => {
    process.stdout.write(`${job.id}\n`);
    await new Promise(() => undefined);
  },
  {
    connection: { url, maxRetriesPerRequest: null },
    prefix,
    lockDuration: 500,
    skipStalledCheck: true,
  },
);
worker.on("error", (error) => process.stderr.write(`${error.message}\n`));
