import type { OverviewController } from "@konverge/contracts";
import { formatCount } from "./format.ts";

type Minutes = OverviewController["minutes"];

const WIDTH = 180;
const HEIGHT = 32;
const GAP = 0.6;

/** A bar per minute: successes, conflicts, failures. Its label has the totals. */
export function Sparkline({
  minutes,
  label,
}: {
  readonly minutes: Minutes;
  /** Default: the totals. */
  readonly label?: string;
}) {
  const most = Math.max(1, ...minutes.map(({ ok, failed, conflict }) => ok + failed + conflict));
  const step = WIDTH / minutes.length;
  const sum = (of: keyof Minutes[number]) => minutes.reduce((total, each) => total + each[of], 0);
  const text =
    label ??
    `Last hour: ${formatCount(sum("ok"))} done, ${formatCount(sum("conflict"))} conflicts, ${formatCount(sum("failed"))} failed`;
  return (
    <svg
      class="spark"
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={text}
    >
      <title>{text}</title>
      <line class="axis" x1="0" x2={WIDTH} y1={HEIGHT - 0.5} y2={HEIGHT - 0.5} />
      {minutes.map((minute, index) => {
        let top = HEIGHT;
        return (["ok", "conflict", "failed"] as const).map((part) => {
          const height = (minute[part] / most) * (HEIGHT - 2);
          if (height === 0) return null;
          const shown = Math.max(height, 1.5);
          top -= shown;
          return (
            <rect
              key={`${index}${part}`}
              class={part}
              x={index * step + GAP / 2}
              y={top}
              width={step - GAP}
              height={shown}
            />
          );
        });
      })}
    </svg>
  );
}
