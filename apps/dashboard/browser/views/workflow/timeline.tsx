import type { RunDetail } from "@konverge/contracts";
import { useState } from "preact/hooks";
import { formatMs } from "../../parts/format.ts";
import { Empty } from "../../parts/notice.tsx";
import { Status } from "../../parts/status.tsx";
import { now } from "../../parts/time.tsx";
import { barTexts, TimelineItem } from "./timeline-item.tsx";
import { ticksOf, timelineOf, type Timeline, type TimelineRow } from "./timeline-rows.ts";

/** The steps and waits of a run as bars to scale. It grows while the run is active. */
export function RunTimeline({ run }: { readonly run: RunDetail }) {
  const [isEven, setEven] = useState(false);
  const line = timelineOf(run, run.endedAt === undefined ? now.value : 0, { isEven });
  const isShort = !isEven && line.scale.cuts.length > 0;
  const { steps, undos } = line;
  const rows = [...steps, ...undos];
  return (
    <section aria-labelledby="steps">
      <div class="section-head">
        <h2 id="steps">Steps</h2>
        <Legend rows={rows} />
        {isShort || isEven ? (
          <button
            type="button"
            class="quiet"
            aria-pressed={isEven}
            onClick={() => setEven(!isEven)}
          >
            {isEven ? "Shorten waits" : "Show to scale"}
          </button>
        ) : null}
      </div>
      {steps.length === 0 && line.executingSinceMs === undefined ? (
        <Empty title={run.endedAt === undefined ? "No recorded steps yet" : "No recorded steps"}>
          <p>
            {run.endedAt === undefined
              ? "Steps appear when they finish or when the run waits for them."
              : "The run ended before its first step."}
          </p>
        </Empty>
      ) : (
        <div class="panel line">
          <Axis line={line} />
          <ol>
            {steps.map((row) => (
              <TimelineItem key={row.name} row={row} line={line} />
            ))}
            {line.executingSinceMs === undefined || undos.length > 0 ? null : (
              <Executing line={line} />
            )}
          </ol>
          {undos.length === 0 ? null : (
            <>
              <h3>Compensation</h3>
              <ol>
                {undos.map((row) => (
                  <TimelineItem key={row.name} row={row} line={line} />
                ))}
                {line.executingSinceMs === undefined ? null : <Executing line={line} />}
              </ol>
            </>
          )}
        </div>
      )}
    </section>
  );
}

function Axis({ line: { fromMs, toMs, scale } }: { readonly line: Timeline }) {
  const spanMs = Math.max(1, toMs - fromMs);
  const marks = scale.cuts.length === 0 ? ticksOf(spanMs) : [0];
  return (
    <div class="line-axis" aria-hidden="true">
      <span class="line-track">
        {marks.map((ms) => (
          <span key={ms} style={{ left: `${scale.place(fromMs + ms) * 100}%` }}>
            {ms === 0 ? "0" : formatMs(ms).replace(".0", "")}
          </span>
        ))}
        {scale.cuts.map(({ at, width, ...cut }) => (
          <span
            key={at}
            class="cut-label"
            style={{ left: `${at * 100}%`, width: `${width * 100}%` }}
            title={`${formatMs(cut.toMs - cut.fromMs)} without work`}
          >
            <span>…</span>
            <span>{formatMs(cut.toMs - cut.fromMs).replace(".0", "")}</span>
          </span>
        ))}
      </span>
    </div>
  );
}

/** The time since the last record, while a worker executes the run. */
function Executing({
  line: { toMs, executingSinceMs = toMs, scale },
}: {
  readonly line: Timeline;
}) {
  const left = scale.place(executingSinceMs);
  const width = scale.place(toMs) - left;
  return (
    <li class="line-row">
      <div class="line-grid">
        <span class="line-name">
          <Status tone="run">executing</Status>
        </span>
        <span class="line-track">
          <span
            class="bar-now"
            role="img"
            aria-label={`executing for ${formatMs(toMs - executingSinceMs)}`}
            style={{ left: `${left * 100}%`, width: `${width * 100}%` }}
          />
        </span>
        <span class="num right nowrap">
          {formatMs(toMs - executingSinceMs)}
          <span class="dim">+</span>
        </span>
      </div>
    </li>
  );
}

function Legend({ rows }: { readonly rows: readonly TimelineRow[] }) {
  const isGuessed = rows.some((row) => row.isGuessed);
  const looks = (["step", "wait", "undo", "failed"] as const).filter(
    (look) => look === "step" || look === "wait" || rows.some((row) => row.look === look),
  );
  const shown = rows.some(({ lostMs }) => lostMs !== undefined)
    ? ([...looks, "lost"] as const)
    : looks;
  return (
    <ul class="legend" aria-label="Bar styles">
      {shown.map((look) => (
        <li key={look}>
          <span class={`bar-${look}`} />
          {barTexts[look]}
        </li>
      ))}
      <li>
        {isGuessed
          ? "from the previous record if no start is recorded"
          : "from first attempt to record"}
      </li>
    </ul>
  );
}
