import { defineScript, readLua, replyTexts, type Script } from "@konverge/redis";

interface IncarnationAnswer {
  readonly marker: string;
  /** Of INFO server and INFO replication. */
  readonly info: string;
}

const signature = {
  name: "incarnation",
  keys: ["incarnation"],
  args: {
    /** A unique text. */
    fresh: "text",
  },
} as const;

/** Reads the marker that detects a loss of data; writes it if it is missing. */
export const incarnationScript: Script<typeof signature, IncarnationAnswer> = defineScript(
  signature,
  {
    lua: readLua(new URL("incarnation.lua", import.meta.url)),
    answer: (reply) => {
      const [marker = "", info = ""] = replyTexts(reply);
      return { marker, info };
    },
  },
);
