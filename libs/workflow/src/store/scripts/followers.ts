import { replyText, replyTexts, type Reply } from "@konverge/redis";

/** What continues when a run ends. Each is empty if there is none. */
export interface FollowerNames {
  readonly parentWorkflow: string;
  readonly parent: string;
  /** Id of the run that waits for the end of this one. */
  readonly next: string;
  /** Key to request. */
  readonly notify: string;
  /** Ids of the runs that get the slot of this one. */
  readonly slotTo: readonly string[];
}

export function decodeFollowers(replies: readonly Reply[]): FollowerNames {
  const [parentWorkflow = "", parent = "", next = "", notify = ""] = replies
    .slice(0, 4)
    .map((reply) => (reply === null ? "" : replyText(reply)));
  return { parentWorkflow, parent, next, notify, slotTo: replyTexts(replies[4] ?? []) };
}
