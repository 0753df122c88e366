import type { SourceView } from "@konverge/contracts";
import { defined, isoTime } from "@konverge/core";
import type { AnnouncedController, SourceReport } from "@konverge/queue";

/** Consecutive failures after which a source counts as failing. */
const MIN_FAILURES = 3;

/** Returns the sources of controllers with their last reports. */
export function sourceViews(
  controllers: readonly AnnouncedController[],
  reports: readonly SourceReport[],
): SourceView[] {
  const known = new Map(reports.map((report) => [`${report.controller}/${report.source}`, report]));
  return controllers.flatMap(({ cluster, name: controller, sources = [] }) =>
    sources.map(({ kind, name }): SourceView => {
      const place = { cluster, controller, name, kind };
      const report = known.get(`${controller}/${name}`);
      if (report?.kind !== kind) return { ...place, state: "unknown", failures: 0, waiting: 0 };
      const { failures, waiting, lagMs, error, worker } = report;
      return {
        ...place,
        state: failures >= MIN_FAILURES ? "failing" : "ok",
        failures,
        waiting,
        lagMs,
        worker,
        reportedAt: isoTime(report.atMs),
        ...defined({
          error,
          failingSince: isoTime(report.failingSinceMs),
          succeededAt: isoTime(report.succeededAtMs),
        }),
      };
    }),
  );
}
