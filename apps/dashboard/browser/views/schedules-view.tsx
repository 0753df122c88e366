import type { ScheduleList } from "@konverge/contracts";
import { idOf } from "../api/run-id.ts";
import { useQuery } from "../api/use-query.ts";
import { CliLine } from "../parts/cli-line.tsx";
import { Empty, Loading, TroubleNote } from "../parts/notice.tsx";
import { Table, type Column } from "../parts/table.tsx";
import { apiPath, viewHref } from "../state/cluster.ts";
import { runHref } from "../state/router.ts";
import { ScheduleActions } from "./schedule/schedule-actions.tsx";
import { Next } from "./schedule/next-time.tsx";
import { scheduleHref, timesText } from "./schedule/times-text.ts";

const EVERY_MS = 5_000;

type Schedule = ScheduleList["items"][number];

/** The schedules of workflows: their next time, last run and operator actions. */
export function SchedulesView() {
  const { data, trouble, reload } = useQuery<ScheduleList>(apiPath("schedules"), EVERY_MS);
  return (
    <>
      <h1>Schedules</h1>
      <p class="lead">Start runs of workflows at fixed times.</p>
      <TroubleNote trouble={trouble} />
      {data === undefined ? (
        trouble === undefined && <Loading />
      ) : data.items.length === 0 ? (
        <Empty title="No schedules yet">
          <p>
            A schedule appears when a worker starts with it in <code>schedules</code> of its
            configuration.
          </p>
        </Empty>
      ) : (
        <div class="panel gap">
          <Table columns={columnsOf(reload)} rows={data.items} keyOf={({ name }) => name} />
        </div>
      )}
      <CliLine line="konverge schedule list" />
    </>
  );
}

function columnsOf(reload: () => void): readonly Column<Schedule>[] {
  return [
    {
      title: "Schedule",
      cell: ({ name, cluster }) => (
        <a class="strong" href={scheduleHref(cluster, name)} data-row>
          {name}
        </a>
      ),
    },
    {
      title: "Workflow",
      cell: ({ workflow }) => <a href={viewHref("/workflows", { workflow })}>{workflow}</a>,
    },
    { title: "Times", cell: ({ schedule }) => timesText(schedule) },
    { title: "Next", cell: (schedule) => <Next schedule={schedule} /> },
    {
      title: "Last run",
      cell: ({ run }) =>
        run === undefined ? <span class="dim">none</span> : <a href={runHref(run)}>{idOf(run)}</a>,
    },
    {
      title: "Actions",
      isTitleHidden: true,
      cell: (schedule) => <ScheduleActions schedule={schedule} onDone={reload} />,
    },
  ];
}
