import { defineScript, readLua, replyWord, type Script } from "@konverge/redis";

const signature = {
  name: "change-approval",
  keys: [
    /** The approvals of the cluster (JSON), by key. */
    "approvals",
    /** The keys whose approved plans wait for their attempts. */
    "due",
    /** The record of the plan. */
    "plan",
  ],
  args: {
    key: "text",
    /** The stored approval that the caller has read; empty if there was none. */
    expected: "text",
    /** Empty to remove it. */
    stored: "text",
    /** The record of a new plan; empty to keep the stored one. */
    record: "text",
    isDue: "flag",
  },
} as const;

/** Replaces the approval of a key, unless it has changed since it was read. */
export const changeApprovalScript: Script<typeof signature, boolean> = defineScript(signature, {
  lua: readLua(new URL("change-approval.lua", import.meta.url)),
  answer: (reply) => replyWord(reply, ["done", "changed"]) === "done",
});
