import type { AttemptReplay, ReplayedOutcome, ReplayedWrite } from "@konverge/engine";
import { span } from "./age.ts";
import { fields } from "./columns.ts";
import { plain } from "./plain-text.ts";

const SIGNS: Readonly<Record<ReplayedWrite["kind"], string>> = {
  same: "=",
  other: "~",
  missing: "-",
  extra: "+",
};
const RESULTS: Readonly<Record<AttemptReplay["result"], string>> = {
  same: "same: today's code does what the attempt did",
  different: "different",
  unknown: "unknown: the recording does not hold everything that today's code needs",
};
/** Longest shown value in characters. */
const MOST = 200;

/** Formats a replay: its result, then each write with the fields that differ. */
export function replayText(replay: AttemptReplay): string {
  const { key, epoch, result, outcome, writes, effects, end, gaps, assumed, unstable } = replay;
  const { recorded, replayed } = outcome;
  const lines = [
    fields([
      ["key", key],
      ["attempt", String(epoch)],
      ["result", RESULTS[result]],
      ["recorded outcome", outcomeText(recorded)],
      ["outcome now", replayed === undefined ? "unknown" : outcomeText(replayed)],
      ["writes", countsOf(writes)],
    ]),
    ...writes.map(writeLines),
    ...effects.map(({ kind, effect, about }) => plain(`${SIGNS[kind]} ${effect}: ${about}`)),
  ];
  if (end !== undefined) {
    lines.push(plain(`stopped: ${end.about}: ${end.reason}; what follows is not known`));
  }
  for (const { about, reason } of assumed) lines.push(plain(`computed: ${about}: ${reason}`));
  for (const { about, reason } of gaps) lines.push(plain(`not recorded: ${about}: ${reason}`));
  if (unstable.length > 0) {
    lines.push(
      "The handler is not deterministic: a second replay differs. Check random values, the time and variables outside of the handler:",
    );
    for (const each of unstable) lines.push(plain(`    ${each.slice(0, MOST)}`));
  }
  return lines.join("\n");
}

function outcomeText({ kind, afterMs, error }: ReplayedOutcome): string {
  const after = afterMs === undefined ? "" : ` after ${span(afterMs)}`;
  return `${kind}${after}${error === undefined ? "" : ` (${error.code}: ${error.message})`}`;
}

function countsOf(writes: readonly ReplayedWrite[]): string {
  const counts = Object.keys(SIGNS).map(
    (kind) => [kind, writes.filter((write) => write.kind === kind).length] as const,
  );
  const shown = counts.filter(([, count]) => count > 0);
  return shown.length === 0 ? "none" : shown.map(([kind, count]) => `${count} ${kind}`).join(", ");
}

const KINDS: Readonly<Record<ReplayedWrite["kind"], string>> = {
  same: "same",
  other: "differs",
  missing: "only in the attempt",
  extra: "only in today's code",
};

function writeLines({
  kind,
  method,
  about,
  cluster,
  status,
  differences,
  recorded,
  replayed,
}: ReplayedWrite): string {
  const where = cluster === undefined ? "" : ` in cluster ${cluster}`;
  const rejected = status !== undefined && status >= 300 ? `, rejected with ${status}` : "";
  const lines = [`${SIGNS[kind]} ${method} ${about}${where} ${KINDS[kind]}${rejected}`];
  for (const { path, recorded: before, replayed: after } of differences) {
    lines.push(`    ${path}: ${valueText(before)} -> ${valueText(after)}`);
  }
  if (kind === "missing" && recorded !== undefined) lines.push(`    ${recorded.slice(0, MOST)}`);
  if (kind === "extra" && replayed !== undefined) lines.push(`    ${replayed.slice(0, MOST)}`);
  return lines.map((line) => plain(line)).join("\n");
}

function valueText(value: unknown): string {
  return value === undefined ? "(missing)" : JSON.stringify(value).slice(0, MOST);
}
