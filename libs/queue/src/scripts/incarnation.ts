import { defineScript, readLua, replyTexts, type Script } from "@konverge/redis";

interface IncarnationAnswer {
  readonly marker: string;
  /** Of INFO server. */
  readonly info: string;
}

const signature = {
  name: "incarnation",
  keys: ["incarnation"],
  args: {
    /** A text that is used once. */
    fresh: "text",
  },
} as const;

/** Reads the marker by which a loss of data is noticed; writes it where it is missing. */
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
