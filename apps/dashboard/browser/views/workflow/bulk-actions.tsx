import { defined } from "@konverge/core";
import type { ActOnRuns, ActOnRunsResponse } from "@konverge/contracts";
import { useEffect, useState } from "preact/hooks";
import { call, CallError, type Trouble } from "../../api/call.ts";
import { ActionButton, type OperatorAction } from "../../parts/action-dialog.tsx";
import { CliLine, flagsOf } from "../../parts/cli-line.tsx";
import { textOf } from "../../parts/form-fields.ts";
import { formatCount, plural } from "../../parts/format.ts";
import { TroubleNote } from "../../parts/notice.tsx";
import { cluster } from "../../state/cluster.ts";
import { defaultCluster } from "../../state/session.ts";

const ACTIONS = ["pause", "resume", "cancel", "terminate", "retry"] as const;
type Action = (typeof ACTIONS)[number];

type Filter = Readonly<Record<string, string>>;

/** Acts on all runs that match the filters of the list, not only on those of the page. */
export function BulkActions({ filter }: { readonly filter: Filter }) {
  return (
    <ActionButton
      label="Act on all matching runs"
      quiet
      danger
      explains={<>The action applies to all runs that match the filters, on all pages.</>}
      fields={<BulkFields filter={filter} />}
      run={async (author, fields) => {
        const action = textOf(fields, "action") as Action;
        // The number that the user has seen, unless it took several requests to count.
        const seen = textOf(fields, "expect");
        const expect = seen === "" ? undefined : Number(seen);
        const { changed, failed, failures } = await actOnAll({ action, filter, author, expect });
        const [first] = failures;
        const trouble =
          first === undefined ? "" : `; ${failed} failed, first ${first.id}: ${first.message}`;
        return `${action}: ${plural(changed, "run")} changed${trouble}`;
      }}
    />
  );
}

/** The action and the number of the runs that it would change. */
function BulkFields({ filter }: { readonly filter: Filter }) {
  const [action, setAction] = useState<Action>("pause");
  const [count, setCount] = useState<Count>();
  const [trouble, setTrouble] = useState<Trouble>();
  const text = JSON.stringify(filter);
  useEffect(() => {
    const end = new AbortController();
    setCount(undefined);
    setTrouble(undefined);
    const author = { by: "dashboard", reason: "preview" };
    countAll({ action, filter, ...author }, end.signal)
      .then(setCount)
      .catch((error: unknown) => {
        if (error instanceof CallError && !end.signal.aborted) setTrouble(error.trouble);
      });
    return () => end.abort();
  }, [action, text]);
  return (
    <>
      <label>
        Action
        <select
          name="action"
          value={action}
          onChange={({ currentTarget }) => setAction(currentTarget.value as Action)}
        >
          {ACTIONS.map((each) => (
            <option key={each} value={each}>
              {each}
            </option>
          ))}
        </select>
      </label>
      <input type="hidden" name="expect" value={count === undefined ? -1 : (count.expect ?? "")} />
      <p role="status">
        {count === undefined
          ? "counting the runs"
          : `${formatCount(count.matched)} ${count.matched === 1 ? "run matches" : "runs match"}`}
      </p>
      <TroubleNote trouble={trouble} />
      <CliLine line={cliLine(action, filter)} />
    </>
  );
}

interface Count {
  readonly matched: number;
  /** Missing for a count of several requests, which the API does not repeat. */
  readonly expect?: number;
}

/** Repeats the count until no runs are left. */
async function countAll(request: Partial<ActOnRuns>, signal: AbortSignal): Promise<Count> {
  const counting = { ...request, dryRun: true };
  let { matched, next } = await send(counting, signal);
  if (next === undefined) return { matched, expect: matched };
  while (next !== undefined) {
    const page = await send({ ...counting, cursor: next }, signal);
    matched += page.matched;
    ({ next } = page);
  }
  return { matched };
}

/** Repeats the request until no runs are left. */
async function actOnAll({
  action,
  filter,
  author,
  expect,
}: {
  readonly action: Action;
  readonly filter: Filter;
  readonly author: OperatorAction;
  readonly expect: number | undefined;
}): Promise<ActOnRunsResponse> {
  const request = { action, filter, ...author };
  let total = await send({ ...request, ...defined({ expect }) });
  for (let { next } = total; next !== undefined;) {
    const page = await send({ ...request, cursor: next });
    const changed = total.changed + page.changed;
    const failed = total.failed + page.failed;
    total = { ...total, changed, failed, failures: [...total.failures, ...page.failures] };
    ({ next } = page);
  }
  return total;
}

async function send(body: Partial<ActOnRuns>, signal?: AbortSignal): Promise<ActOnRunsResponse> {
  const options = { method: "POST", body: { cluster: cluster.value, ...body } } as const;
  return await call("v1/runs/actions", { ...options, ...(signal && { signal }) });
}

function cliLine(action: Action, { by, ...others }: Filter): string {
  const flags = flagsOf({
    ...others,
    ...defined({ "started-by": by }),
    ...(cluster.value === defaultCluster ? {} : { cluster: cluster.value }),
  });
  const all = Object.keys(others).length === 0 && by === undefined ? ["--all"] : [];
  return [`konverge run ${action}`, ...flags, ...all, "--reason WHY"].join(" ");
}
