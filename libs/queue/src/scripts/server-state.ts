import { defineScript, readLua, replyText, type Script } from "@konverge/redis";

const signature = {
  name: "server-state",
  /** Selects the server that has this key. */
  keys: ["_key"],
} as const;

/** The memory and the replicas of a Redis server. */
export interface ServerState {
  readonly usedBytes: number;
  /** 0 without a limit. */
  readonly maxBytes: number;
  readonly replicas: number;
  /** Bytes that the replica furthest behind has not acknowledged; 0 without replicas. */
  readonly replicaLagBytes: number;
}

/** Returns the state of the server that has the key. */
export const serverStateScript: Script<typeof signature, ServerState> = defineScript(signature, {
  lua: readLua(new URL("server-state.lua", import.meta.url)),
  answer: (reply) => parseServerState(replyText(reply)),
});

/** Parses INFO memory and INFO replication. A field that the server does not report counts as 0. */
export function parseServerState(info: string): ServerState {
  const read = (name: string) => Number(new RegExp(`^${name}:(\\d+)`, "m").exec(info)?.[1] ?? 0);
  const written = read("master_repl_offset");
  const offsets = [...info.matchAll(/^slave\d+:.*\boffset=(\d+)/gm)].map(([, text]) =>
    Number(text),
  );
  return {
    usedBytes: read("used_memory"),
    maxBytes: read("maxmemory"),
    replicas: read("connected_slaves"),
    replicaLagBytes: Math.max(0, ...offsets.map((offset) => written - offset)),
  };
}
