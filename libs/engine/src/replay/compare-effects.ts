import { bodyDifferences, type SameOptions } from "@konverge/kube";

/** An effect besides the writes to an API server that only one of both runs has. */
export interface EffectDifference {
  /** `missing`: only the attempt had it; `extra`: only the replay has it. */
  readonly kind: "missing" | "extra";
  /** An event, a call of `ctx.external` or `ctx.limit`, or the start of a workflow run. */
  readonly effect: "event" | "external" | "run";
  /** Its name or content. */
  readonly about: string;
}

/** Compares two lists of effects, whose order does not matter. */
export function compareEffects(
  effect: EffectDifference["effect"],
  {
    recorded,
    replayed,
  }: { readonly recorded: readonly object[]; readonly replayed: readonly object[] },
  { same, label }: { readonly same: SameOptions; readonly label: (entry: object) => string },
): EffectDifference[] {
  const left = recorded.map((entry) => JSON.stringify(entry));
  const extra = replayed.filter((entry) => {
    const text = JSON.stringify(entry);
    const at = left.findIndex((each) => bodyDifferences(each, text, same).length === 0);
    if (at !== -1) left.splice(at, 1);
    return at === -1;
  });
  return [
    ...left.map((text): EffectDifference => {
      return { kind: "missing", effect, about: label(JSON.parse(text) as object) };
    }),
    ...extra.map((entry): EffectDifference => ({ kind: "extra", effect, about: label(entry) })),
  ];
}
