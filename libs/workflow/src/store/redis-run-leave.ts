import { followersOf } from "./followers-of.ts";
import { fenced, type ScriptItem } from "./journal-call.ts";
import type { RedisRuns } from "./redis-runs.ts";
import { textOf } from "./run-fields.ts";
import type { Followers, Held, Leave, RunOutputText } from "./run-journal-store.ts";
import { endingKeys } from "./run-names.ts";
import { areAllWaits, awaitedSignals, type RunWait } from "./run-record.ts";
import { continueScript } from "./scripts/continue.ts";
import { leaveScript, type LeaveAnswer } from "./scripts/leave.ts";
import { MAX_SHARED } from "./share-calls.ts";
import { memberOf } from "./wait-names.ts";

interface LeaveCall {
  readonly how: Leave;
  readonly output: RunOutputText | undefined;
  /** Shares the script call with other executions of this process. */
  readonly share: (call: ScriptItem<typeof leaveScript>) => Promise<LeaveAnswer>;
}

/** Ends an execution: the run waits, continues, or ends. */
export async function leaveRun(
  runs: RedisRuns,
  held: Held,
  { how, output, share }: LeaveCall,
): Promise<Followers> {
  if (how.kind === "continued") return await continueRun(runs, held, how.input, output);
  const { workflow, id, epoch, wakeSeq, run: view } = held;
  const names = runs.namesOf(workflow);
  const text = detailOf(how);
  const call = {
    ...endingKeys(names, id, view.key),
    epoch,
    kind: how.kind,
    untilMs: untilOf(how),
    text,
    blockedError: how.kind === "blocked" ? textOf(how.error) : "",
    id,
    wakeSeq,
    retentionMs: runs.keptOf(workflow).retentionMs,
    statuses: names.statuses,
    objects: how.kind === "waiting" ? (how.objects ?? []).join(" ") : "",
    awaited: how.kind === "waiting" ? awaitedText(how.waits) : "",
    member: memberOf(held),
    waitRoot: names.waitRoot,
    published: output?.published ?? "",
  };
  const [answer = await share(call)] =
    text.length + call.published.length > MAX_SHARED
      ? await runs.evaluate(leaveScript, { each: [call] })
      : [];
  if (answer.kind === "fenced") throw fenced(held);
  return followersOf(workflow, answer);
}

async function continueRun(
  runs: RedisRuns,
  held: Held,
  input: unknown,
  output: RunOutputText | undefined,
): Promise<Followers> {
  const { workflow, id, epoch, run } = held;
  const { wakes, codes, statuses, waitKinds, rechecks, waitRoot, ...names } =
    runs.namesOf(workflow);
  const kind = await runs.evaluate(continueScript, {
    keys: {
      run: names.run(id),
      steps: names.steps(id),
      answers: names.answers(id),
      answeredIds: names.answeredIds(id),
      wakes,
      codes,
      waitKinds,
      rechecks,
    },
    args: {
      epoch,
      id,
      version: held.code ?? run.version,
      input: textOf(input),
      statuses,
      member: memberOf(held),
      waitRoot,
      published: output?.published ?? "",
    },
  });
  if (kind === "fenced") throw fenced(held);
  return {};
}

/** An empty first line means that no other signal continues the run. Workers of earlier versions skip it. */
function awaitedText(waits: readonly RunWait[] | undefined): string {
  return `${areAllWaits(waits) ? "\n" : ""}${awaitedSignals(waits).join("\n")}`;
}

type Left = Exclude<Leave, { readonly kind: "continued" }>;

function untilOf(how: Left): number | "" {
  const untilMs = "untilMs" in how ? how.untilMs : undefined;
  return untilMs === undefined ? "" : Math.ceil(untilMs);
}

function detailOf(how: Left): string {
  switch (how.kind) {
    case "waiting":
      return textOf(how.waits);
    case "blocked":
      return how.reason;
    case "compensating":
      return JSON.stringify(how.failing);
    case "done":
      return textOf(how.result);
    case "failed":
    case "cancelled":
      return JSON.stringify(how.error);
  }
}
