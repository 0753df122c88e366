import {
  clockPart,
  defineScript,
  readLua,
  replyList,
  replyNumber,
  replyText,
  type Script,
} from "@konverge/redis";

const signature = {
  name: "server-state",
  /** Selects the server that has this key. */
  keys: ["_key"],
} as const;

/** The memory, the replicas and the clock of a Redis server. A figure that it does not report is undefined. */
export interface ServerState {
  readonly usedBytes: number | undefined;
  /** 0 without a limit. */
  readonly maxBytes: number | undefined;
  readonly replicas: number | undefined;
  /** Bytes that the replica furthest behind has not acknowledged; 0 without replicas. */
  readonly replicaLagBytes: number | undefined;
}

/** The state of a server that this process has just read. */
export interface ReadServerState extends ServerState {
  /** The clock of this process minus that of the server, at most the time of the call too high. */
  readonly clockAheadMs: number;
}

/** Returns the state of the server that has the key. */
export const serverStateScript: Script<typeof signature, ReadServerState> = defineScript(
  signature,
  {
    lua: readLua(new URL("server-state.lua", import.meta.url)),
    include: [clockPart],
    answer: (reply) => {
      const [info, timeMs] = replyList(reply);
      return {
        ...parseServerState(replyText(info)),
        clockAheadMs: Date.now() - replyNumber(timeMs),
      };
    },
  },
);

/** Parses INFO memory and INFO replication. A field that the server does not report is undefined. */
export function parseServerState(info: string): ServerState {
  const read = (name: string): number | undefined => {
    const text = new RegExp(`^${name}:(\\d+)`, "m").exec(info)?.[1];
    return text === undefined ? undefined : Number(text);
  };
  const written = read("master_repl_offset");
  const replicas = read("connected_slaves");
  const offsets = [...info.matchAll(/^slave\d+:.*\boffset=(\d+)/gm)].map(([, text]) =>
    Number(text),
  );
  return {
    usedBytes: read("used_memory"),
    maxBytes: read("maxmemory"),
    replicas,
    replicaLagBytes:
      written === undefined || offsets.length !== replicas
        ? undefined
        : Math.max(0, ...offsets.map((offset) => written - offset)),
  };
}
