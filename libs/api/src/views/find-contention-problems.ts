import type { ContentionEpisode, OverviewProblem } from "@konverge/contracts";
import { defined, parseKey } from "@konverge/core";
import { EPISODE_PAUSE_MS } from "@konverge/queue";
import type { LoopState } from "@konverge/records";
import { count, cut, tallied, trendOf } from "./problem-text.ts";

export interface ContentionFindings {
  /** Most wasted writes per minute first. */
  readonly episodes: readonly ContentionEpisode[];
  /** By key. */
  readonly loops: ReadonlyMap<string, LoopState>;
}

/** Episodes with fewer wasted writes are not reported as problems. */
const MIN_WRITES = 20;
/** Limits the problems of one kind, so that others remain visible. */
const MOST_OF_A_KIND = 3;
const MOST_FIELDS = 3;

/** Finds objects whose writers undo each other's work. Polling is not a problem. */
export function findContentionProblems({ episodes, loops }: ContentionFindings): OverviewProblem[] {
  const current = episodes.filter(
    ({ wastedWrites, lastAt }) =>
      wastedWrites >= MIN_WRITES && Date.now() - Date.parse(lastAt) < EPISODE_PAUSE_MS,
  );
  const covered = new Set(current.map((episode) => `${episode.controller} ${nameOf(episode)}`));
  const others = [...loops].filter(([key, { kind }]) => {
    const { controller, ...object } = parseKey(key);
    return kind !== "requeue" && !covered.has(`${controller} ${nameOf(object)}`);
  });
  return [
    ...limited(current.map(ofEpisode), "contention", "with contention"),
    ...limited(
      others.map(([key, state]) => ofLoop(key, state)),
      "loop",
      "in reconcile loops",
    ),
  ];
}

function ofEpisode(episode: ContentionEpisode): OverviewProblem {
  const { kind, controller, managers, fields, perMinute, since, wastedWrites } = episode;
  const object = nameOf(episode);
  const field = fields[0] ?? "fields";
  const rate =
    perMinute < 1 ? "less than once a minute" : `${Math.round(perMinute)} times a minute`;
  const rest = managers.length - 2;
  const others = `${managers.slice(0, 2).join(", ")}${rest > 0 ? ` and ${rest} more` : ""}`;
  const message =
    kind === "selfTriggered"
      ? `${controller} is triggered by its own writes of ${object}: ${rate}`
      : kind === "ownershipFlip"
        ? `${others} and ${controller} overwrite each other's ${field} of ${object}: ${rate}`
        : `${controller} conflicts${others === "" ? "" : ` with ${others}`} on ${object}: ${rate}`;
  return {
    code: kind === "selfTriggered" ? "loop" : "contention",
    level: "warning",
    message,
    subject: object,
    count: wastedWrites,
    trend: trendOf(episode.minutes),
    since,
    cause: causeOf(episode),
    consequence: `${count(wastedWrites, "write")} without effect in the last hour.${throttleText(episode.isThrottled)}`,
    action: suggestedFix(episode),
    controller,
    ...defined({ key: episode.key }),
  };
}

function ofLoop(key: string, { kind, paths, managers, sinceMs, protection }: LoopState) {
  const { controller, ...object } = parseKey(key);
  const what =
    kind === "ownershipFlip" ? `overwrites fields of ${managers.join(", ")}` : "triggers itself";
  const writers = {
    kind: kind === "ownershipFlip" ? kind : ("selfTriggered" as const),
    controller,
    managers,
    fields: paths,
  };
  return {
    code: "loop",
    level: "warning",
    message: `${controller} ${what} on ${nameOf(object)}`,
    subject: nameOf(object),
    since: new Date(sinceMs).toISOString(),
    cause: causeOf(writers),
    consequence: `Each write starts another attempt.${throttleText(protection === "throttle")}`,
    action: suggestedFix(writers),
    controller,
    key,
  } satisfies OverviewProblem;
}

function throttleText(isThrottled: boolean | undefined): string {
  if (isThrottled === undefined) return "";
  return isThrottled ? " Its attempts are throttled." : " Its attempts are not throttled.";
}

type Writers = Pick<ContentionEpisode, "kind" | "controller" | "managers" | "fields">;

/** The writers and the fields, as far as they are known. */
function causeOf({ kind, controller, managers, fields }: Writers): string {
  const what = fields.length === 0 ? "the object" : fields.slice(0, MOST_FIELDS).join(", ");
  if (kind === "selfTriggered")
    return `${controller} writes ${what} and is triggered by the change`;
  const others = managers.length === 0 ? "another writer" : managers.join(", ");
  const how = kind === "ownershipFlip" ? "different values to" : "at the same time to";
  return cut(`${others} and ${controller} write ${how} ${what}`);
}

/** Returns the suggested fix for contention. */
export function suggestedFix({ kind, controller, managers, fields }: Writers): string {
  const field = fields[0] ?? "the field";
  const other = managers[0] ?? "the other writer";
  switch (kind) {
    case "ownershipFlip":
      return `Give ${field} one owner: remove it from the writes of ${controller} or of ${other}`;
    case "conflict":
      return `Let ${controller} and ${other} change different fields with \`strategy: "fields"\`, or write less often`;
    case "selfTriggered":
      return `Write ${field} only if its value differs`;
  }
}

/** Keeps the first problems and counts the others. */
function limited(
  problems: readonly OverviewProblem[],
  code: "contention" | "loop",
  what: string,
): OverviewProblem[] {
  const rest = problems.length - MOST_OF_A_KIND;
  if (rest <= 0) return [...problems];
  const others = problems.slice(MOST_OF_A_KIND);
  const [since] = others.flatMap((problem) => problem.since ?? []).toSorted();
  const summary: OverviewProblem = {
    code,
    level: "warning",
    message: `${count(rest, "more object")} ${what}`,
    count: rest,
    ...defined({ since }),
    cause: tallied(others.flatMap(({ cause }) => cause ?? [])),
    consequence: "They have fewer writes without effect than those above.",
    action: "List them with `konverge contention list`",
  };
  return [...problems.slice(0, MOST_OF_A_KIND), summary];
}

function nameOf({
  namespace,
  name,
}: {
  readonly namespace?: string | undefined;
  readonly name: string;
}) {
  return namespace === undefined ? name : `${namespace}/${name}`;
}
