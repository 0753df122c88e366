import type { RedisClient } from "@konverge/redis";
import type { QueueNames } from "../keys/queue-names.ts";
import type { Requester } from "../request/requester.ts";

export interface QueueControlOptions {
  readonly redis: RedisClient;
  readonly names: QueueNames;
  readonly controller: string;
  readonly cluster: string;
  readonly requester: Requester;
}
