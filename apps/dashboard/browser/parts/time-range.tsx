import { query, setQuery } from "../state/router.ts";

const SPANS = [
  { minutes: "60", text: "1 h" },
  { minutes: "360", text: "6 h" },
  { minutes: "1440", text: "24 h" },
] as const;

/** The selected length in minutes, from the address. */
export function minutesShown(): number {
  const minutes = query.value.get("minutes");
  return Number(SPANS.find((span) => span.minutes === minutes)?.minutes ?? 60);
}

/** The selected part of the period in Unix seconds; undefined for all of it. */
export function zoomShown(): { readonly fromS: number; readonly toS: number } | undefined {
  const [fromS, toS] = ["from", "to"].map((name) => {
    const at = query.value.get(name);
    return at === null ? Number.NaN : Date.parse(at) / 1_000;
  });
  if (fromS === undefined || toS === undefined || !(fromS < toS)) return undefined;
  return { fromS, toS };
}

/** Shows a part of the period. The address keeps it, so that users can share it. */
export function zoomTo(fromS: number, toS: number): void {
  const iso = (seconds: number) => new Date(Math.round(seconds) * 1_000).toISOString();
  setQuery({ from: iso(fromS), to: iso(toS) });
}

/** Buttons for the length of the period, and to leave a zoom. */
export function TimeRange() {
  const minutes = String(minutesShown());
  return (
    <div class="buttons" role="group" aria-label="Time range">
      {zoomShown() === undefined ? null : (
        <button
          type="button"
          class="chip"
          onClick={() => setQuery({ from: undefined, to: undefined })}
        >
          Reset zoom
        </button>
      )}
      {SPANS.map((span) => (
        <button
          type="button"
          class="chip"
          key={span.minutes}
          aria-pressed={span.minutes === minutes}
          onClick={() => setQuery({ minutes: span.minutes, from: undefined, to: undefined })}
        >
          {span.text}
        </button>
      ))}
    </div>
  );
}
