/**
 * A process with some of the clients, as the HTTP API submits for them, to be killed. A successor submits all mutations again
 * with their ids.
 */
import { isKonvergeError } from "@konverge/core";
import { openMutations, type NewMutation } from "@konverge/mutations";
import { incrementOf, type MutationLoad } from "./mutation-load.ts";

export interface MutationClientConfig extends MutationLoad {
  readonly url: string;
  readonly prefix: string;
  readonly clients: readonly number[];
  /** Most mutations per call. */
  readonly batch: number;
  readonly pauseMs: number;
}

const config = JSON.parse(process.argv[2] ?? "{}") as MutationClientConfig;
const { url, prefix, test, perClient, clients, batch, pauseMs } = config;
const mutations = openMutations({
  redis: { url },
  prefix,
  cluster: "default",
  onError: () => undefined,
});

async function submit(given: readonly NewMutation[]): Promise<void> {
  for (;;) {
    try {
      await mutations.submit(given);
      return;
    } catch (error) {
      if (!isKonvergeError(error) || error.code !== "redis_unavailable") throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

async function run(client: number): Promise<void> {
  for (let at = 0; at < perClient;) {
    const size = Math.min(perClient - at, 1 + ((client + at) % batch));
    await submit(Array.from({ length: size }, (_, n) => incrementOf(test, client, at + n)));
    at += size;
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}

process.stdout.write("up\n");
await Promise.all(clients.map(run));
process.stdout.write("done\n");
await mutations.close();
