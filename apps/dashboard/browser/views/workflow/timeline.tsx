import type { RunDetail } from "@konverge/contracts";
import { formatMs } from "../../parts/format.ts";
import { Empty } from "../../parts/notice.tsx";
import { Status } from "../../parts/status.tsx";
import { now } from "../../parts/time.tsx";
import { barTexts, TimelineItem } from "./timeline-item.tsx";
import { ticksOf, timelineOf, type Timeline, type TimelineRow } from "./timeline-rows.ts";

/** What a run did and waited for, each a bar to scale; it grows while the run goes on. */
export function RunTimeline({ run }: { readonly run: RunDetail }) {
  const line = timelineOf(run, run.endedAt === undefined ? now.value : 0);
  const { steps, undos } = line;
  const rows = [...steps, ...undos];
  return (
    <section aria-labelledby="steps">
      <div class="section-head">
        <h2 id="steps">Steps</h2>
        <Legend rows={rows} />
      </div>
      {steps.length === 0 && line.atWorkMs === undefined ? (
        <Empty title="No step is recorded yet">
          <p>A step appears here when it has ended, or when the run waits for it.</p>
        </Empty>
      ) : (
        <div class="panel line">
          <Axis line={line} />
          <ol>
            {steps.map((row) => (
              <TimelineItem key={row.name} row={row} line={line} />
            ))}
            {line.atWorkMs === undefined || undos.length > 0 ? null : <AtWork line={line} />}
          </ol>
          {undos.length === 0 ? null : (
            <>
              <h3>Taken back</h3>
              <ol>
                {undos.map((row) => (
                  <TimelineItem key={row.name} row={row} line={line} />
                ))}
                {line.atWorkMs === undefined ? null : <AtWork line={line} />}
              </ol>
            </>
          )}
        </div>
      )}
    </section>
  );
}

function Axis({ line: { fromMs, toMs } }: { readonly line: Timeline }) {
  const span = Math.max(1, toMs - fromMs);
  return (
    <div class="line-axis" aria-hidden="true">
      <span class="line-track">
        {ticksOf(span).map((ms) => (
          <span key={ms} style={{ left: `${(ms / span) * 100}%` }}>
            {ms === 0 ? "0" : formatMs(ms).replace(".0", "")}
          </span>
        ))}
      </span>
    </div>
  );
}

/** What a worker does now is known when it is recorded. */
function AtWork({ line: { fromMs, toMs, atWorkMs = toMs } }: { readonly line: Timeline }) {
  const spanMs = Math.max(1, toMs - fromMs);
  const shares = [atWorkMs - fromMs, toMs - atWorkMs].map((ms) => `${(ms / spanMs) * 100}%`);
  return (
    <li class="line-row">
      <div class="line-grid">
        <span class="line-name">
          <Status tone="run">at work</Status>
        </span>
        <span class="line-track">
          <span
            class="bar-now"
            role="img"
            aria-label={`at work for ${formatMs(toMs - atWorkMs)}`}
            style={{ left: shares[0], width: shares[1] }}
          />
        </span>
        <span class="num right nowrap">
          {formatMs(toMs - atWorkMs)}
          <span class="dim"> …</span>
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
    <ul class="legend" aria-label="Looks of the bars">
      {shown.map((look) => (
        <li key={look}>
          <span class={`bar-${look}`} />
          {barTexts[look]}
        </li>
      ))}
      <li>
        {isGuessed
          ? "where a begin is not recorded, from the record before"
          : "from its first try to its record"}
      </li>
    </ul>
  );
}
