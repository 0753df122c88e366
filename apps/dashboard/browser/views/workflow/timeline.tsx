import type { RunDetail } from "@konverge/contracts";
import { formatMs, plural } from "../../parts/format.ts";
import { Json } from "../../parts/json.tsx";
import { Empty } from "../../parts/notice.tsx";
import { Status, type Tone } from "../../parts/status.tsx";
import { Clock, now, Time } from "../../parts/time.tsx";
import {
  ticksOf,
  timelineOf,
  type BarLook,
  type Timeline,
  type TimelineRow,
} from "./timeline-rows.ts";

/** What a run did and waited for, each a bar to scale; it grows while the run goes on. */
export function RunTimeline({ run }: { readonly run: RunDetail }) {
  const line = timelineOf(run, run.endedAt === undefined ? now.value : 0);
  const { steps, undos } = line;
  const isGuessed = [...steps, ...undos].some((row) => row.isGuessed);
  return (
    <section aria-labelledby="steps">
      <div class="section-head">
        <h2 id="steps">Steps</h2>
        <Legend isGuessed={isGuessed} hasUndos={undos.length > 0} />
      </div>
      {steps.length === 0 ? (
        <Empty title="No step is recorded yet">
          <p>A step appears here when it has ended, or when the run waits for it.</p>
        </Empty>
      ) : (
        <div class="panel line">
          <Axis line={line} />
          <ol>
            {steps.map((row) => (
              <Row key={row.name} row={row} line={line} />
            ))}
          </ol>
          {undos.length === 0 ? null : (
            <>
              <h3>Taken back</h3>
              <ol>
                {undos.map((row) => (
                  <Row key={row.name} row={row} line={line} />
                ))}
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

const TEXTS: Readonly<Record<BarLook, string>> = {
  step: "worked",
  wait: "waited",
  undo: "taken back",
  failed: "failed",
  instant: "at once",
};

function Legend({
  isGuessed,
  hasUndos,
}: {
  readonly isGuessed: boolean;
  readonly hasUndos: boolean;
}) {
  const looks: readonly BarLook[] = [
    "step",
    "wait",
    ...(hasUndos ? (["undo"] as const) : []),
    "failed",
  ];
  return (
    <ul class="legend" aria-label="Looks of the bars">
      {looks.map((look) => (
        <li key={look}>
          <span class={`bar-${look}`} />
          {TEXTS[look]}
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

function Row({ row, line }: { readonly row: TimelineRow; readonly line: Timeline }) {
  const { name, kind, look, fromMs, toMs, isOpen, step, until, refused } = row;
  const spanMs = Math.max(1, line.toMs - line.fromMs);
  const tookMs = Math.max(0, toMs - fromMs);
  const took = kind === "now" ? "" : formatMs(tookMs);
  const shown = kind === "undo" ? name.replace(/^undo:/, "") : name;
  const attempts = step?.attempts ?? 1;
  return (
    <li>
      <details class="line-row">
        <summary data-row>
          <span class="line-name">
            <Status tone={toneOf(row)}>{shown}</Status>
            <span class="tag">{kind === "now" ? "clock" : kind}</span>
          </span>
          <span class="line-track">
            <span
              class={`bar-${look}`}
              role="img"
              aria-label={`${shown}: ${TEXTS[look]} ${took}${isOpen ? " so far" : ""}, from ${formatMs(Math.max(0, fromMs - line.fromMs))} on`}
              style={{
                left: `${((fromMs - line.fromMs) / spanMs) * 100}%`,
                width: `${(tookMs / spanMs) * 100}%`,
              }}
            />
          </span>
          <span class="num right nowrap">
            {took}
            {isOpen ? <span class="dim"> …</span> : null}
          </span>
          {attempts < 2 &&
          step?.by === undefined &&
          step?.error === undefined &&
          refused.length === 0 ? null : (
            <span class="line-note">
              {attempts < 2 ? null : <span class="warn">{plural(attempts, "try", "tries")}</span>}
              {step?.by === undefined ? null : <span class="dim">by {step.by}</span>}
              {refused.length === 0 ? null : (
                <span class="warn">{plural(refused.length, "signal")} refused</span>
              )}
              {step?.error === undefined ? null : (
                <span class={toneOf(row)}>{step.error.message}</span>
              )}
            </span>
          )}
        </summary>
        <dl class="details">
          <dt>Began</dt>
          <dd>
            <Clock at={new Date(fromMs).toISOString()} />
          </dd>
          {step === undefined || kind === "sleep" ? null : (
            <>
              <dt>Recorded</dt>
              <dd>
                <Clock at={step.at} />
              </dd>
            </>
          )}
          {until === undefined || !isOpen ? null : (
            <>
              <dt>Ends by itself</dt>
              <dd>
                <Time at={until} />
              </dd>
            </>
          )}
          {step?.error === undefined ? null : (
            <>
              <dt>Error</dt>
              <dd>
                <code>{step.error.code}</code> {step.error.message}
              </dd>
            </>
          )}
          {refused.map((message) => (
            <>
              <dt>Refused</dt>
              <dd>{message}</dd>
            </>
          ))}
          {step?.value === undefined ? null : (
            <>
              <dt>{kind === "signal" ? "Payload" : "Result"}</dt>
              <dd>
                <Json value={step.value} />
              </dd>
            </>
          )}
        </dl>
      </details>
    </li>
  );
}

function toneOf({ look, isOpen, kind, step }: TimelineRow): Tone {
  if (step?.error?.code === "cancelled") return "idle";
  if (step?.error?.code === "wait_timeout") return "warn";
  if (look === "failed") return isOpen ? "warn" : "bad";
  if (isOpen) return kind === "sleep" || kind === "signal" || kind === "child" ? "wait" : "run";
  return "good";
}
