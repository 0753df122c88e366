import type { ScheduleList, StartRunResponse } from "@konverge/contracts";
import { call } from "../api/call.ts";
import { idOf } from "../api/run-id.ts";
import { useQuery } from "../api/use-query.ts";
import { ActionButton } from "../parts/action-dialog.tsx";
import { CliLine, quote } from "../parts/cli-line.tsx";
import { Empty, Loading, TroubleNote } from "../parts/notice.tsx";
import { Status } from "../parts/status.tsx";
import { Table, type Column } from "../parts/table.tsx";
import { Time } from "../parts/time.tsx";
import { apiPath, viewHref } from "../state/cluster.ts";
import { go, runHref } from "../state/router.ts";

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
        <Table columns={columnsOf(reload)} rows={data.items} keyOf={({ name }) => name} />
      )}
      <CliLine line="konverge schedule list" />
    </>
  );
}

function columnsOf(reload: () => void): readonly Column<Schedule>[] {
  return [
    { title: "Schedule", cell: ({ name }) => name },
    {
      title: "Workflow",
      cell: ({ workflow }) => <a href={viewHref("/workflows", { workflow })}>{workflow}</a>,
    },
    { title: "Times", cell: ({ schedule }) => <code>{schedule}</code> },
    { title: "Next", cell: (schedule) => <Next schedule={schedule} /> },
    {
      title: "Last run",
      cell: ({ run }) =>
        run === undefined ? (
          <span class="dim">none</span>
        ) : (
          <a href={runHref(run)} data-row>
            {idOf(run)}
          </a>
        ),
    },
    {
      title: "Actions",
      isTitleHidden: true,
      cell: (schedule) => <Actions schedule={schedule} onDone={reload} />,
    },
  ];
}

function Next({ schedule: { active, paused, nextAt, seenAt } }: { readonly schedule: Schedule }) {
  if (paused !== undefined) {
    const { by = "unknown", reason = "no reason given", since } = paused;
    return (
      <>
        <Status tone="warn">paused</Status>{" "}
        <span class="dim">
          by {by} <Time at={since} />: {reason}
        </span>
      </>
    );
  }
  if (!active || nextAt === undefined) {
    return (
      <>
        <Status tone="bad">no worker</Status>{" "}
        <span class="dim">
          last seen <Time at={seenAt} />
        </span>
      </>
    );
  }
  return <Time at={nextAt} />;
}

function Actions({
  schedule: { name, cluster, paused },
  onDone,
}: {
  readonly schedule: Schedule;
  readonly onDone: () => void;
}) {
  const post = <T,>(action: string, body: object) =>
    call<T>(`v1/schedules/${encodeURIComponent(cluster)}/${encodeURIComponent(name)}/${action}`, {
      method: "POST",
      body,
    });
  const line = (action: string) => (
    <CliLine line={`konverge schedule ${action} ${quote(name)} --reason WHY`} />
  );
  return (
    <div class="buttons">
      {paused === undefined ? (
        <ActionButton
          label="Pause"
          quiet
          explains={
            <>
              Skips the times of {name} until it is resumed. {line("pause")}
            </>
          }
          run={async (action) => {
            await post("pause", action);
            onDone();
            return `${name} is paused`;
          }}
        />
      ) : (
        <ActionButton
          label="Resume"
          primary
          explains={
            <>
              Continues with the next time of {name}. {line("resume")}
            </>
          }
          run={async (action) => {
            await post("resume", action);
            onDone();
            return `${name} is resumed`;
          }}
        />
      )}
      <ActionButton
        label="Trigger now"
        quiet
        explains={
          <>
            Starts a run of {name} now, also while it is paused. {line("trigger")}
          </>
        }
        run={async (action) => {
          const { id, created } = await post<StartRunResponse>("trigger", action);
          go(runHref(id));
          return created ? `${idOf(id)} is started` : `${idOf(id)} is active already`;
        }}
      />
    </div>
  );
}
