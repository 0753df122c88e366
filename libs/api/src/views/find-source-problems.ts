import { defined } from "@konverge/core";
import type { OverviewProblem, SourceView } from "@konverge/contracts";
import { count, cut } from "./problem-text.ts";

const NAMES = { poll: "poll", stream: "stream", inbound: "inbound source" } as const;

/** Finds the sources with repeated failures. Their events are kept. */
export function findSourceProblems(sources: readonly SourceView[]): OverviewProblem[] {
  return sources.flatMap((source): OverviewProblem[] => {
    const { controller, name, kind, state, failures, failingSince, error, waiting } = source;
    if (state !== "failing") return [];
    return [
      {
        code: "source_failing",
        level: "warning",
        subject: name,
        count: failures,
        message: `${controller}: the ${NAMES[kind]} ${name} failed ${failures} times in a row`,
        ...defined({ since: failingSince }),
        cause: cut(error ?? "unknown"),
        consequence:
          kind === "inbound"
            ? `${count(waiting, "delivery").replace("deliverys", "deliveries")} waiting, none lost; other deliveries are processed.`
            : "New events are not requested; none is lost.",
        action:
          kind === "inbound"
            ? `Correct the map of the source in ${controller}; the deliveries are tried again`
            : `Correct the source in ${controller}, or the system that it reads; it is tried again`,
        controller,
      },
    ];
  });
}
