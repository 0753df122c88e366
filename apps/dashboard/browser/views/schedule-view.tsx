import type { RunList, ScheduleDetail } from "@konverge/contracts";
import { idOf } from "../api/run-id.ts";
import { useQuery } from "../api/use-query.ts";
import { CliLine, quote } from "../parts/cli-line.tsx";
import { Fact } from "../parts/fact.tsx";
import { formatMs, plural } from "../parts/format.ts";
import { Json } from "../parts/json.tsx";
import { Empty, Loading, TroubleNote } from "../parts/notice.tsx";
import { usePageState } from "../parts/page-state.ts";
import { RunStatus } from "../parts/status.tsx";
import { Table, type Column } from "../parts/table.tsx";
import { Clock, Time } from "../parts/time.tsx";
import { apiPath, viewHref } from "../state/cluster.ts";
import { runHref } from "../state/router.ts";
import { Next } from "./schedule/next-time.tsx";
import { ScheduleActions } from "./schedule/schedule-actions.tsx";
import { timesText } from "./schedule/times-text.ts";

const EVERY_MS = 5_000;
const SHOWN_RUNS = 30;

type Run = RunList["items"][number];

/** A schedule: its next times, its runs and operator actions. `path` is percent-encoded: cluster and name. */
export function ScheduleView({ path, name }: { readonly path: string; readonly name: string }) {
  const schedule = useQuery<ScheduleDetail>(`v1/schedules/${path}`, EVERY_MS);
  const by = `schedule ${name}`;
  const runs = useQuery<RunList>(apiPath("runs", { by, limit: String(SHOWN_RUNS) }), EVERY_MS);
  const { data } = schedule;
  usePageState({ title: `${name} · schedule`, tone: data && toneOf(data) });
  if (data === undefined) {
    return (
      <>
        <h1>{name}</h1>
        <TroubleNote trouble={schedule.trouble} />
        {schedule.loading ? <Loading /> : null}
      </>
    );
  }
  const { nextTimes, input, workflow, overlap, catchUpMs, jitterMs } = data;
  return (
    <>
      <header class="object-head">
        <div>
          <p class="crumbs">
            <a href={viewHref("/schedules")}>Schedules</a>
            <span aria-hidden="true">/</span>
            <a href={viewHref("/workflows", { workflow })}>{workflow}</a>
          </p>
          <h1>{name}</h1>
          <p class="dim small">{timesText(data.schedule)}</p>
        </div>
        <ScheduleActions schedule={data} onDone={schedule.reload} />
      </header>
      <TroubleNote trouble={schedule.trouble} />
      <dl class="facts">
        <Fact title="Next">
          <Next schedule={data} />
        </Fact>
        <Fact title="If a run is active">{overlap}</Fact>
        <Fact title="Missed times">
          {catchUpMs === undefined ? "the last one" : `those of the last ${formatMs(catchUpMs)}`}
        </Fact>
        <Fact title="Longest delay of a start">
          {jitterMs === undefined ? "none" : formatMs(jitterMs)}
        </Fact>
      </dl>
      <div class="values">
        <section aria-labelledby="next-times">
          <h2 id="next-times">Next times</h2>
          {nextTimes.length === 0 ? (
            <p class="dim">none while it is paused or has no worker</p>
          ) : (
            <ul class="panel next-times">
              {nextTimes.map((at) => (
                <li key={at}>
                  <span class="num">{at.slice(0, 10)}</span> <Clock at={at} />
                  <span class="dim">
                    <Time at={at} />
                  </span>
                </li>
              ))}
            </ul>
          )}
        </section>
        {input === undefined ? null : (
          <section aria-labelledby="input">
            <h2 id="input">Input of each run</h2>
            <Json value={input} />
          </section>
        )}
      </div>
      <section aria-labelledby="history">
        <h2 id="history">History</h2>
        <TroubleNote trouble={runs.trouble} />
        {runs.data === undefined ? (
          <Loading />
        ) : runs.data.items.length === 0 ? (
          <Empty title="No runs yet" />
        ) : (
          <div class="panel">
            <Table
              caption={plural(runs.data.items.length, "run")}
              columns={COLUMNS}
              rows={runs.data.items}
              keyOf={({ id }) => id}
            />
          </div>
        )}
        {runs.data?.next === undefined ? null : (
          <p class="links">
            <a href={viewHref("/workflows", { by, all: "true" })}>All runs of this schedule</a>
          </p>
        )}
      </section>
      <CliLine line={`konverge schedule show ${quote(name)}`} />
    </>
  );
}

function toneOf({ active, paused }: ScheduleDetail) {
  return paused !== undefined ? "warn" : active ? undefined : "bad";
}

const COLUMNS: readonly Column<Run>[] = [
  {
    title: "Run",
    cell: ({ id }) => (
      <a class="strong" href={runHref(id)} data-row>
        {idOf(id)}
      </a>
    ),
  },
  { title: "Status", cell: ({ status }) => <RunStatus of={status} /> },
  {
    title: "Scheduled for",
    cell: ({ scheduledAt }) =>
      scheduledAt === undefined ? <span class="dim">triggered</span> : <Clock at={scheduledAt} />,
  },
  {
    title: "Duration",
    look: "num right nowrap",
    cell: ({ createdAt, endedAt }) =>
      endedAt === undefined ? null : formatMs(Date.parse(endedAt) - Date.parse(createdAt)),
  },
  { title: "Started", look: "right nowrap", cell: ({ createdAt }) => <Time at={createdAt} /> },
];
