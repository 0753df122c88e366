import {
  runScript,
  type RedisClient,
  type ScriptCall,
  type ScriptSignature,
  type Script,
} from "@konverge/redis";
import { runNames, type RunNames } from "./run-names.ts";

export interface RedisRunStoreOptions {
  /** Makes a call, with the caller's policy for an unavailable Redis. */
  readonly call: <T>(run: (redis: RedisClient) => Promise<T>) => Promise<T>;
  readonly prefix: string;
  readonly cluster: string;
  /** How long a run is kept after its end, in ms. */
  readonly retentionMs: number;
  /** How ended runs of a workflow are kept, if it differs. Default: no limit. */
  readonly keptOf?: (workflow: string) => KeptRuns | undefined;
}

export interface KeptRuns {
  /** Default: that of the store. */
  readonly retentionMs?: number;
  /** Limit of the estimated memory of the ended runs, in bytes. */
  readonly limitBytes?: number;
}

/** Access to the runs of a cluster in Redis, shared by the ports of the store. */
export class RedisRuns {
  readonly scope: string;
  readonly call: RedisRunStoreOptions["call"];
  readonly #options: RedisRunStoreOptions;
  readonly #names = new Map<string, RunNames>();

  constructor(options: RedisRunStoreOptions) {
    this.scope = `${options.prefix}/${options.cluster}`;
    this.call = options.call;
    this.#options = options;
  }

  namesOf(workflow: string): RunNames {
    const { prefix, cluster } = this.#options;
    const names = this.#names.get(workflow) ?? runNames(prefix, cluster, workflow);
    this.#names.set(workflow, names);
    return names;
  }

  keptOf(workflow: string): KeptRuns & { readonly retentionMs: number } {
    const { retentionMs, keptOf } = this.#options;
    return { retentionMs, ...keptOf?.(workflow) };
  }

  async evaluate<Signature extends ScriptSignature, Answer>(
    script: Script<Signature, Answer>,
    inputs: ScriptCall<Signature>,
  ): Promise<Answer> {
    return await this.call((redis) => runScript(redis, script, inputs));
  }
}
