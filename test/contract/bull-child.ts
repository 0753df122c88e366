/** A BullMQ worker in a separate process that starts a job and never ends it. A test kills it. */
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
