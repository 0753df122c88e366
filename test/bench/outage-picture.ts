import type { ArmResult } from "../chaos/outage-experiment.ts";

/** Both arms of one fault. */
export interface OutageRun {
  readonly title: string;
  readonly jitter: ArmResult;
  readonly guard: ArmResult;
}

const WIDTH = 900;
const PANEL = 200;
const LEFT = 60;
const RIGHT = 20;
const TOP = 60;
const SECONDS_SHOWN = 55;
const ARMS = [
  { arm: "jitter", color: "#c2410c", name: "jittered retries alone" },
  { arm: "guard", color: "#1d4ed8", name: "Konverge" },
] as const;

/** Draws calls per second over time as SVG, one panel per fault. The fault begins at time 0. */
export function drawOutages(runs: readonly OutageRun[]): string {
  const height = TOP + runs.length * (PANEL + 50) + 10;
  const parts = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="system-ui, sans-serif" font-size="13">`,
    `<rect width="${WIDTH}" height="${height}" fill="#ffffff"/>`,
    `<text x="${LEFT}" y="24" font-size="16" font-weight="600">API calls per second sent to the server; the fault is shaded</text>`,
    ...ARMS.map(
      ({ color, name }, index) =>
        `<rect x="${LEFT + index * 220}" y="34" width="14" height="4" fill="${color}"/><text x="${LEFT + 20 + index * 220}" y="42">${name}</text>`,
    ),
    ...runs.map((run, index) => drawPanel(run, TOP + 20 + index * (PANEL + 50))),
    "</svg>",
  ];
  return `${parts.join("\n")}\n`;
}

function drawPanel(run: OutageRun, top: number): string {
  const most = Math.max(...ARMS.flatMap(({ arm }) => run[arm].perSecond), 1);
  const x = (second: number) =>
    LEFT + ((second + 8) / (SECONDS_SHOWN + 8)) * (WIDTH - LEFT - RIGHT);
  const y = (calls: number) => top + PANEL - (calls / most) * (PANEL - 20);
  const faultSeconds = (run.guard.faultToMs - run.guard.faultFromMs) / 1_000;
  const lines = ARMS.map(({ arm, color }) => {
    const { perSecond, faultFromMs } = run[arm];
    const points = perSecond
      .map((calls, second) => ({ calls, at: second - faultFromMs / 1_000 }))
      .filter(({ at }) => at >= -8 && at <= SECONDS_SHOWN)
      .map(({ calls, at }) => `${x(at).toFixed(1)},${y(calls).toFixed(1)}`);
    return `<polyline fill="none" stroke="${color}" stroke-width="2" points="${points.join(" ")}"/>`;
  });
  const marks = [0, 10, 20, 30, 40, 50].map(
    (second) =>
      `<text x="${x(second)}" y="${top + PANEL + 16}" text-anchor="middle" fill="#555">${second} s</text>`,
  );
  const sent = `${run.title}: ${run.jitter.sentDuring} calls during the fault with jittered retries alone, ${run.guard.sentDuring} with Konverge`;
  return [
    `<rect x="${x(0)}" y="${top}" width="${x(faultSeconds) - x(0)}" height="${PANEL}" fill="#f3f4f6"/>`,
    `<text x="${LEFT}" y="${top - 6}" font-weight="600">${sent}</text>`,
    `<line x1="${LEFT}" y1="${top + PANEL}" x2="${WIDTH - RIGHT}" y2="${top + PANEL}" stroke="#999"/>`,
    `<text x="${LEFT - 8}" y="${y(most) + 4}" text-anchor="end" fill="#555">${most}</text>`,
    `<text x="${LEFT - 8}" y="${top + PANEL}" text-anchor="end" fill="#555">0</text>`,
    ...marks,
    ...lines,
  ].join("\n");
}
