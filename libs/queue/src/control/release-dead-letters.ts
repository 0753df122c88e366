import { formatKey, KonvergeError, parseKey } from "@konverge/core";
import { runScript, withRedis } from "@konverge/redis";
import { checkOperatorAction } from "./check-operator-action.ts";
import type { QueueControlOptions } from "./queue-control-options.ts";
import type { KeyIndex } from "./key-index.ts";
import type { DeadLetterSelector, QueueControl } from "../contract/queue-control.ts";
import type { OperatorAction } from "../contract/pause.ts";
import { assertOwnKey } from "../keys/job-payload.ts";
import { logActionScript } from "../scripts/log-action.ts";

/** Requests in flight. */
const AT_ONCE = 100;

/**
 * Releases dead-lettered keys with user requests, never with BullMQ's retry. After a failure, the remaining keys are still
 * dead-lettered, and the same action continues with them.
 */
export function createDeadLetterRelease(
  options: QueueControlOptions & { readonly index: KeyIndex },
): QueueControl["release"] {
  const { redis, names, controller, cluster, requester, index } = options;

  const isDead = async (id: string) =>
    (await withRedis(redis, () => redis.zscore(names.dead, id))) !== null;
  const request = async (
    ids: readonly string[],
    { by, reason }: OperatorAction,
    via: "http" | "cli",
  ) => {
    const trigger = { kind: via, by, reason: `released: ${reason}` };
    const requestOptions = { class: "interactive", unbounded: true } as const;
    for (let start = 0; start < ids.length; start += AT_ONCE) {
      const part = ids.slice(start, start + AT_ONCE);
      await Promise.all(part.map((id) => requester(parseKey(id), trigger, requestOptions)));
    }
  };
  const log = async (selection: DeadLetterSelector, action: OperatorAction, count: number) => {
    const scope =
      "key" in selection
        ? formatKey(selection.key)
        : `all dead-lettered keys${filterText(selection.match)}`;
    const given = JSON.stringify({ kind: "release", scope, ...action, count });
    await withRedis(redis, () =>
      runScript(redis, logActionScript, {
        keys: { actions: names.actions },
        args: { action: given },
      }),
    );
  };

  return async (selection, given, { dryRun = false, via = "cli" } = {}) => {
    const action = checkOperatorAction(given);
    let count = 0;
    if ("key" in selection) {
      assertOwnKey(selection.key, { controller, cluster });
      const id = formatKey(selection.key);
      if (!(await isDead(id))) throw new KonvergeError("not_found", `${id} is not dead-lettered`);
      if (!dryRun) await request([id], action, via);
      count = 1;
    } else {
      let after: string | undefined = "";
      while (after !== undefined) {
        const from: string = after;
        const page = await index.deadPage(selection.match, from);
        if (!dryRun) await request(page.ids, action, via);
        count += page.ids.length;
        after = page.next;
      }
    }
    if (!dryRun && count > 0) await log(selection, action, count);
    return { count };
  };
}

function filterText(match: object): string {
  const filters = Object.entries(match).map(([field, value]) => `${field} ${String(value)}`);
  return filters.length === 0 ? "" : ` with ${filters.join(", ")}`;
}
