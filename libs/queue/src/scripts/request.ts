import {
  defineScript,
  readLua,
  replyFlag,
  replyList,
  replyNumber,
  type Reply,
  type Script,
} from "@konverge/redis";
import { addJobPart } from "./add-job.ts";
import { askPart } from "./ask.ts";
import { fairTagPart } from "./fair-tag.ts";
import { newsPart } from "./news.ts";
import { nowPart } from "./now.ts";
import { revisionPart } from "./revision.ts";

export type RequestAnswer =
  | {
      readonly kind: "accepted";
      readonly number: number;
      /** Another request was waiting. */
      readonly joined: boolean;
    }
  /** Nothing was changed. */
  | { readonly kind: "full"; readonly waiting: number }
  /** The error of this request alone. */
  | { readonly kind: "failed"; readonly error: Error };

const signature = {
  name: "request",
  /** `bullWaiting`: BullMQ's waiting jobs. */
  keys: ["fair", "aging", "index", "dead", "parked", "bullWaiting"],
  args: {
    /** Prefix of BullMQ's keys. */
    bull: "text",
    /** Most triggers to keep. */
    cap: "number",
  },
  each: {
    keys: ["key"],
    args: {
      /** 1 interactive .. 4 background. */
      class: "number",
      news: "flag",
      /** JSON without line breaks. */
      trigger: "text",
      /** A resourceVersion, or empty. */
      version: "text",
      /** Of the object (keys/revision.ts), or empty. */
      revision: "text",
      member: "text",
      /** Most waiting keys, or empty for no bound. */
      most: "text",
    },
  },
} as const;

/**
 * Merges requests into the hashes of their keys and gives each key its job, in one step: an acknowledged request has a
 * job, and one that starts covers the request. Combines several, because each call has a fixed cost; a failing one does not
 * affect the others. Rejects only requests that would add a job: a key that runs, waits or backs off has one.
 *
 * Ends a backoff only for new events, as often as the key's bucket allows (news.ts); a user request always does.
 * A resourceVersion counts as floor only where versions compare (digits; longer is newer, KEP-5504).
 *
 * Names of jobs are built here; they share the hash tag of the keys.
 */
export const requestScript: Script<typeof signature, RequestAnswer[]> = defineScript(signature, {
  lua: readLua(new URL("request.lua", import.meta.url)),
  include: [nowPart, askPart, fairTagPart, newsPart, revisionPart, addJobPart],
  answer: (reply) => replyList(reply).map(decode),
});

function decode(reply: Reply): RequestAnswer {
  if (reply instanceof Error) return { kind: "failed", error: reply };
  const [first, second] = replyList(reply);
  const number = replyNumber(first);
  return number === 0
    ? { kind: "full", waiting: replyNumber(second) }
    : { kind: "accepted", number, joined: replyFlag(second) };
}
