import type { ObjectHistory } from "@konverge/contracts";
import { toneOfPhase, type Tone } from "../../parts/status.tsx";
import { now } from "../../parts/time.tsx";

type Writer = ObjectHistory["contention"]["competingWriters"][number];

/** An episode of contention ends after this time without a conflict, as in the API. */
const QUIET_MS = 600_000;
/** Two takeovers of a field are a change of the owner and back. */
const FEWEST_TAKEOVERS = 2;

/** Returns the writer with the most conflicts and takeovers of the current episode. */
export function currentRival({ contention }: ObjectHistory): Writer | undefined {
  return contention.competingWriters
    .filter(
      ({ kind, inEpisode, lastAt }) =>
        now.value - Date.parse(lastAt) < QUIET_MS &&
        (kind === "conflict" || inEpisode >= FEWEST_TAKEOVERS),
    )
    .toSorted((one, other) => other.inEpisode - one.inEpisode)[0];
}

/** The tone of an object: one that writers overwrite in turn is not in order, even if each attempt succeeds. */
export function toneOfObject(history: ObjectHistory): Tone {
  const tone = toneOfPhase(history.phase);
  if (tone !== "good" && tone !== "run") return tone;
  const isContended = currentRival(history)?.kind === "takeover";
  return isContended || history.contention.loop !== undefined ? "warn" : tone;
}
