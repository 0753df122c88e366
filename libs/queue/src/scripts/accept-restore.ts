import { clockPart, defineScript, readLua, replyTexts, type Script } from "@konverge/redis";

const signature = {
  name: "accept-restore",
  /** Hash of the restore state. */
  keys: ["state"],
  args: {
    /** Separated by spaces. */
    kinds: "text",
    by: "text",
  },
} as const;

/** Ends the hold of these kinds. Returns those that it ended, and those still held. */
export const acceptRestoreScript: Script<
  typeof signature,
  { readonly accepted: string; readonly held: string }
> = defineScript(signature, {
  lua: readLua(new URL("accept-restore.lua", import.meta.url)),
  include: [clockPart],
  answer: (reply) => {
    const [accepted = "", held = ""] = replyTexts(reply);
    return { accepted, held };
  },
});
