import type { ActivityMinute } from "@konverge/contracts";
import { useMemo } from "preact/hooks";
import { Chart } from "../../parts/chart.tsx";
import {
  backlogChart,
  backlogText,
  callsChart,
  callsText,
  completeMinutes,
  outcomesChart,
  outcomesText,
} from "../activity/charts-of.ts";
import { MinuteTable } from "../activity/minute-table.tsx";

/** Throughput, queue and API calls of the last hour, with one cursor. */
export function ActivityCharts({ activity }: { readonly activity: readonly ActivityMinute[] }) {
  const items = useMemo(() => completeMinutes(activity), [activity]);
  const charts = useMemo(
    () => ({
      outcomes: outcomesChart(items),
      backlog: backlogChart(items),
      calls: callsChart(items),
    }),
    [items],
  );
  return (
    <section aria-label="Last hour">
      <div class="charts">
        <Chart
          title="Attempts per minute"
          summary={outcomesText(activity)}
          data={charts.outcomes}
        />
        <Chart title="Waiting requests" summary={backlogText(activity)} data={charts.backlog} />
        <Chart title="API calls" summary={callsText(items)} data={charts.calls} />
      </div>
      <MinuteTable items={activity} of="cluster" />
    </section>
  );
}
