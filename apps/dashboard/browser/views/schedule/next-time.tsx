import type { ScheduleList } from "@konverge/contracts";
import { Status } from "../../parts/status.tsx";
import { Time } from "../../parts/time.tsx";

/** The next time of a schedule, or the reason why it has none. */
export function Next({
  schedule: { active, paused, nextAt, seenAt },
}: {
  readonly schedule: ScheduleList["items"][number];
}) {
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
