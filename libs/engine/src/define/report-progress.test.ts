import { expect, test } from "vitest";
import { reportProgress, type Progress, type ProgressDraft } from "./report-progress.ts";

/** The generic rules of kstatus (sigs.k8s.io/cli-utils, pkg/kstatus/status/generic.go). */
function kstatus({ metadata, status }: ProgressDraft): string {
  if ((status.observedGeneration ?? 0) !== metadata.generation) return "InProgress";
  const holds = (type: string, value: string) =>
    status.conditions?.some((each) => each.type === type && each.status === value) === true;
  if (holds("Reconciling", "True")) return "InProgress";
  if (holds("Stalled", "True")) return "Failed";
  return holds("Ready", "False") ? "InProgress" : "Current";
}

const at = (second: number) => () => new Date(Date.UTC(2026, 0, 1, 0, 0, second));
const draftOf = (generation = 3): ProgressDraft => ({
  metadata: { name: "blue", generation },
  status: {},
});
const state = (wanted: Progress["state"], reason = "Because"): Progress => ({
  state: wanted,
  reason,
});

test.each([
  ["ready", "Current"],
  ["reconciling", "InProgress"],
  ["stalled", "Failed"],
] as const)("%s is %s for kstatus, after any other state too", (wanted, expected) => {
  for (const before of ["ready", "reconciling", "stalled"] as const) {
    const draft = draftOf();
    reportProgress(draft, state(before, "Before"), at(0));
    reportProgress(draft, state(wanted), at(1));
    expect(kstatus(draft)).toBe(expected);
    expect(draft.status.observedGeneration).toBe(3);
  }
});

test("repeating a report changes nothing, and a newer spec is in progress", () => {
  const draft = draftOf();
  reportProgress(draft, state("ready"), at(0));
  const before = structuredClone(draft);
  reportProgress(draft, state("ready"), at(9));
  expect(draft).toEqual(before);
  draft.metadata.generation = 4;
  expect(kstatus(draft)).toBe("InProgress");
});
