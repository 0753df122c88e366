import type { ContentionEpisode, OverviewProblem } from "@konverge/contracts";
import { defined, parseKey, shortName } from "@konverge/core";
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
/** The fields that a cause names. */
const MOST_FIELDS = 3;

/** Finds objects whose writers undo each other's work. Polling is not a problem. */
export function findContentionProblems({ episodes, loops }: ContentionFindings): OverviewProblem[] {
  const current = episodes.filter(
    ({ wastedWrites, lastAt }) =>
      wastedWrites >= MIN_WRITES && Date.now() - Date.parse(lastAt) < EPISODE_PAUSE_MS,
  );
  const covered = new Set(current.map((episode) => `${episode.controller} ${shortName(episode)}`));
  const others = [...loops].filter(([key, { kind }]) => {
    const { controller, ...object } = parseKey(key);
    return kind !== "requeue" && !covered.has(`${controller} ${shortName(object)}`);
  });
  return [
    ...limited(groupsOf(current, writersOf).map(ofEpisodes), "contention", "with contention"),
    ...limited(groupsOf(others, writersOfLoop).map(ofLoops), "loop", "in reconcile loops"),
  ];
}

type Writers = Pick<ContentionEpisode, "kind" | "controller" | "managers" | "fields">;
type Group<Item> = readonly [Item, ...Item[]];

/** A problem of one or more objects. */
interface Found {
  readonly problem: OverviewProblem;
  readonly objects: number;
}

/** Joins items with the same writers and fields: they have one cause. Keeps the order of the first items. */
function groupsOf<Item>(
  items: readonly Item[],
  of: (item: Item) => Writers,
): readonly Group<Item>[] {
  const groups = Map.groupBy(items, (item) => {
    const writers = of(item);
    // Writers that are not known may differ.
    return writers.managers.length + writers.fields.length === 0 ? item : JSON.stringify(writers);
  });
  return [...groups.values()].flatMap(([first, ...rest]) =>
    first === undefined ? [] : [[first, ...rest] as const],
  );
}

function writersOf({ kind, controller, managers, fields }: ContentionEpisode): Writers {
  return { kind, controller, managers, fields };
}

function writersOfLoop([key, { kind, paths, managers }]: readonly [string, LoopState]): Writers {
  const { controller } = parseKey(key);
  const isFlip = kind === "ownershipFlip";
  return { kind: isFlip ? kind : "selfTriggered", controller, managers, fields: paths };
}

/** `shop/web` or `shop/web and 2 more objects`. */
function objectsText(name: string, { length }: readonly unknown[]): string {
  return length === 1 ? name : `${name} and ${count(length - 1, "more object")}`;
}

function ofEpisodes(episodes: Group<ContentionEpisode>): Found {
  const [first] = episodes;
  const { kind, controller, managers, fields, key } = first;
  const sum = (of: (episode: ContentionEpisode) => number) =>
    episodes.reduce((all, each) => all + of(each), 0);
  const object = objectsText(shortName(first), episodes);
  const field = fields[0] ?? "fields";
  const perMinute = sum((each) => each.perMinute);
  const rate = rateText(Math.round(perMinute));
  const rest = managers.length - 2;
  const others = `${managers.slice(0, 2).join(", ")}${rest > 0 ? ` and ${rest} more` : ""}`;
  const message =
    kind === "selfTriggered"
      ? `${controller} is triggered by its own writes of ${object}: ${rate}`
      : kind === "ownershipFlip"
        ? `${others} and ${controller} overwrite each other's ${field} of ${object}: ${rate}`
        : `${controller} conflicts${others === "" ? "" : ` with ${others}`} on ${object}: ${rate}`;
  const wasted = sum(({ wastedWrites }) => wastedWrites);
  const [since = first.since] = episodes.map((each) => each.since).toSorted();
  const problem: OverviewProblem = {
    code: kind === "selfTriggered" ? "loop" : "contention",
    level: "warning",
    message,
    subject: shortName(first),
    count: wasted,
    trend: trendOf(first.minutes.map((_, at) => sum(({ minutes }) => minutes[at] ?? 0))),
    since,
    cause: causeOf(first),
    consequence: `${count(wasted, "write")} without effect in the last hour.${throttleText(first.isThrottled)}`,
    action: suggestedFix(first),
    controller,
    ...(episodes.length === 1 ? defined({ key }) : {}),
  };
  return { problem, objects: episodes.length };
}

function ofLoops(loops: Group<readonly [string, LoopState]>): Found {
  const [first] = loops;
  const [key, { kind, managers, protection }] = first;
  const { controller, ...object } = parseKey(key);
  const what =
    kind === "ownershipFlip" ? `overwrites fields of ${managers.join(", ")}` : "triggers itself";
  const writers = writersOfLoop(first);
  const since = Math.min(...loops.map(([, state]) => state.sinceMs));
  const problem: OverviewProblem = {
    code: "loop",
    level: "warning",
    message: `${controller} ${what} on ${objectsText(shortName(object), loops)}`,
    subject: shortName(object),
    since: new Date(since).toISOString(),
    cause: causeOf(writers),
    consequence: `Each write starts another attempt.${throttleText(protection === "throttle")}`,
    action: suggestedFix(writers),
    controller,
    ...(loops.length === 1 ? { key } : {}),
  };
  return { problem, objects: loops.length };
}

function rateText(perMinute: number): string {
  if (perMinute < 1) return "less than once a minute";
  return perMinute === 1 ? "once a minute" : `${perMinute} times a minute`;
}

function throttleText(isThrottled: boolean | undefined): string {
  if (isThrottled === undefined) return "";
  return isThrottled ? " Its attempts are throttled." : " Its attempts are not throttled.";
}

/** What the writers do with the fields. The message names the writers. */
function causeOf({ kind, managers, fields }: Writers): string {
  const what = fields.length === 0 ? "the object" : fields.slice(0, MOST_FIELDS).join(", ");
  if (kind === "selfTriggered") return cut(`Its write of ${what} triggers the next attempt`);
  const who = managers.length > 1 ? "All" : "Both";
  const how = kind === "ownershipFlip" ? "different values" : "at the same time";
  return cut(`${who} write ${what}${kind === "ownershipFlip" ? " with" : ""} ${how}`);
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

/** Keeps the first problems and counts the objects of the others. */
function limited(
  found: readonly Found[],
  code: "contention" | "loop",
  what: string,
): OverviewProblem[] {
  const shown = found.slice(0, MOST_OF_A_KIND).map(({ problem }) => problem);
  const others = found.slice(MOST_OF_A_KIND);
  if (others.length === 0) return shown;
  const rest = others.reduce((sum, { objects }) => sum + objects, 0);
  const [since] = others.flatMap(({ problem }) => problem.since ?? []).toSorted();
  const summary: OverviewProblem = {
    code,
    level: "warning",
    message: `${count(rest, "more object")} ${what}`,
    count: rest,
    ...defined({ since }),
    cause: tallied(others.flatMap(({ problem }) => problem.cause ?? [])),
    consequence: "They have fewer writes without effect than those above.",
    action: "List them with `konverge contention list`",
  };
  return [...shown, summary];
}
