import { formatMs } from "../../parts/format.ts";
import { viewHref } from "../../state/cluster.ts";

/** Formats `every 120000 ms` as `every 2 min`; a cron expression stays. */
export function timesText(schedule: string): string {
  const ms = /^every (\d+) ms$/.exec(schedule)?.[1];
  return ms === undefined ? schedule : `every ${formatMs(Number(ms)).replace(".0", "")}`;
}

/** Returns the address of a schedule's page. */
export function scheduleHref(cluster: string, name: string): string {
  return viewHref(`/schedules/${encodeURIComponent(cluster)}/${encodeURIComponent(name)}`);
}
