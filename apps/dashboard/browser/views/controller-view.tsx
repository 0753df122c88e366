import type { Activity } from "@konverge/contracts";
import { useMemo } from "preact/hooks";
import { call } from "../api/call.ts";
import { useQuery } from "../api/use-query.ts";
import { ActionButton, type OperatorAction } from "../parts/action-dialog.tsx";
import { Chart } from "../parts/chart.tsx";
import { CliLine, quote } from "../parts/cli-line.tsx";
import { Loading, TroubleNote } from "../parts/notice.tsx";
import { usePageState } from "../parts/page-state.ts";
import { Tabs } from "../parts/tabs.tsx";
import { minutesShown, TimeRange, zoomShown, zoomTo } from "../parts/time-range.tsx";
import { apiPath, cluster, viewHref } from "../state/cluster.ts";
import { path } from "../state/router.ts";
import {
  backlogChart,
  backlogText,
  completeMinutes,
  durationChart,
  durationText,
  outcomesChart,
  outcomesText,
  withEvents,
} from "./activity/charts-of.ts";
import { MinuteEvents } from "./activity/minute-events.tsx";
import { MinuteTable } from "./activity/minute-table.tsx";
import { Findings } from "./controller/findings.tsx";

const EVERY_MS = 15_000;
/** A day has many minutes, of which few change. */
const EVERY_OF_LONG_MS = 60_000;
const LONG_MINUTES = 60;
const HEIGHT = 170;

/** The activity of a controller by minute, its errors, objects and competing managers. */
export function ControllerView({ name }: { readonly name: string }) {
  const minutes = minutesShown();
  const { data, trouble, reload } = useQuery<Activity>(
    apiPath("activity", { controller: name, minutes: String(minutes) }),
    minutes > LONG_MINUTES ? EVERY_OF_LONG_MS : EVERY_MS,
  );
  const { isPaused = false } = data ?? {};
  usePageState({ title: name, tone: isPaused ? "warn" : undefined });
  return (
    <>
      <div class="title-row">
        <div>
          <p class="crumbs">controller</p>
          <h1>{name}</h1>
        </div>
        <div class="buttons">
          <TimeRange />
          <PauseButton name={name} isPaused={isPaused} onDone={reload} />
        </div>
      </div>
      <Tabs
        label={`Pages of ${name}`}
        tabs={[
          { title: "Activity", href: viewHref(path.value), isCurrent: true },
          { title: "Attempts", href: viewHref("/attempts", { controller: name }) },
          { title: "Objects", href: viewHref("/objects", { controller: name }) },
          {
            title: "Dead letters",
            href: viewHref("/dead-letters", { controller: name }),
            count: data?.deadLetters,
            isMore: (data?.deadLetters ?? 0) >= MOST_DEAD,
          },
        ]}
      />
      <TroubleNote trouble={trouble} />
      {data === undefined ? (
        trouble === undefined && <Loading />
      ) : (
        <>
          <Charts items={data.items} />
          <Findings activity={data} controller={name} />
        </>
      )}
      <CliLine line={`konverge attempt list --controller ${quote(name)}`} />
    </>
  );
}

/** Dead letters are counted up to this number. */
const MOST_DEAD = 100;

/** Pauses the controller, or resumes it. */
function PauseButton({
  name,
  isPaused,
  onDone,
}: {
  readonly name: string;
  readonly isPaused: boolean;
  readonly onDone: () => void;
}) {
  const send = async (route: string, action: OperatorAction) => {
    const body = { cluster: cluster.value, controller: name, ...action };
    await call(route, { method: "POST", body });
    onDone();
  };
  return (
    <>
      {isPaused ? (
        <ActionButton
          label={`Resume ${name}`}
          explains={`Pending requests of ${name} run immediately.`}
          run={async (action) => {
            await send("v1/pauses/resume", action);
            return `${name} is resumed`;
          }}
        />
      ) : null}
      <ActionButton
        label={`Pause ${name}`}
        danger
        explains="No attempt starts until the pause ends. Running attempts finish and requests stay queued."
        run={async (action) => {
          await send("v1/pauses", action);
          return `${name} is paused`;
        }}
      />
    </>
  );
}

function Charts({ items: all }: { readonly items: Activity["items"] }) {
  const zoom = zoomShown();
  const { fromS = 0, toS = Infinity } = zoom ?? {};
  const { items, charts } = useMemo(() => {
    const isShown = ({ at }: Activity["items"][number]) => {
      const atS = Date.parse(at) / 1_000;
      return atS >= fromS && atS <= toS;
    };
    const shown = completeMinutes(all).filter(isShown);
    return {
      items: all.filter(isShown),
      charts: {
        outcomes: withEvents(outcomesChart(shown, HEIGHT), shown),
        duration: withEvents(durationChart(shown, HEIGHT), shown),
        backlog: withEvents(backlogChart(shown, HEIGHT), shown),
      },
    };
  }, [all, fromS, toS]);
  return (
    <>
      <div class="charts">
        <Chart
          title="Attempts per minute"
          summary={outcomesText(items)}
          data={charts.outcomes}
          onZoom={zoomTo}
        />
        <Chart
          title="Attempt duration"
          summary={durationText(items)}
          data={charts.duration}
          onZoom={zoomTo}
        />
        <Chart
          title="Waiting requests"
          summary={backlogText(items)}
          data={charts.backlog}
          onZoom={zoomTo}
        />
      </div>
      <MinuteEvents items={items} />
      <MinuteTable items={items} of="controller" />
    </>
  );
}
