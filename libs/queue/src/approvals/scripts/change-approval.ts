import { defineScript, readLua, replyWord, type Script } from "@konverge/redis";
import { limitRecordsPart } from "../../plans/scripts/limit-records.ts";

/** Retention of the record of a plan that waits, and of the users who requested it, in ms. */
export const KEPT_MS: number = 30 * 86_400_000;

const signature = {
  name: "change-approval",
  keys: [
    /** The approvals of the cluster (JSON), by key. */
    "approvals",
    /** The keys whose approved plans wait for their attempts. */
    "due",
    /** The keys that have records of plans, by the time of the plan. */
    "ages",
    /** The sizes of these records by key; their sum is in the empty field. */
    "sizes",
  ],
  args: {
    /** Prefix of the records. */
    records: "text",
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

/**
 * Replaces the approval of a key, unless it has changed since it was read. A new record deletes the oldest records
 * beyond the limits of the cluster. Their plans remain listed, but cannot be approved until the keys are planned again.
 */
export const changeApprovalScript: Script<typeof signature, boolean> = defineScript(signature, {
  lua: readLua(new URL("change-approval.lua", import.meta.url)),
  include: [limitRecordsPart],
  constants: { KEPT_MS },
  answer: (reply) => replyWord(reply, ["done", "changed"]) === "done",
});
