import { runHref } from "../../state/router.ts";
import { formatMs, plural } from "../../parts/format.ts";
import { Json } from "../../parts/json.tsx";
import { Status, type Tone } from "../../parts/status.tsx";
import { Clock, Time } from "../../parts/time.tsx";
import type { BarLook, Timeline, TimelineRow } from "./timeline-rows.ts";

export const barTexts: Readonly<Record<BarLook | "lost", string>> = {
  step: "worked",
  wait: "waited",
  undo: "compensated",
  failed: "failed",
  instant: "instant",
  lost: "worker lost",
};

/** A step or wait: its bar, and its record when expanded. */
export function TimelineItem({
  row,
  line,
}: {
  readonly row: TimelineRow;
  readonly line: Timeline;
}) {
  const { name, kind, look, fromMs, toMs, lostMs, isOpen, step, child, message, until, rejected } =
    row;
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
            {lostMs === undefined ? null : (
              <span
                class="bar-lost"
                role="img"
                aria-label={`${barTexts.lost} before it, ${formatMs(fromMs - lostMs)}`}
                style={{
                  left: `${((lostMs - line.fromMs) / spanMs) * 100}%`,
                  width: `${((fromMs - lostMs) / spanMs) * 100}%`,
                }}
              />
            )}
            <span
              class={`bar-${look}`}
              role="img"
              aria-label={`${shown}: ${barTexts[look]} ${took}${isOpen ? " so far" : ""}, started at ${formatMs(Math.max(0, fromMs - line.fromMs))}`}
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
          <span class="line-note">
            {message === undefined ? null : <span class="dim">{message}</span>}
            {lostMs === undefined ? null : (
              <span class="warn">
                worker lost; resumed {formatMs(fromMs - lostMs)} after the previous record
              </span>
            )}
            {attempts < 2 ? null : <span class="warn">{plural(attempts, "attempt")}</span>}
            {step?.by === undefined ? null : <span class="dim">by {step.by}</span>}
            {rejected.length === 0 ? null : (
              <span class="warn">{plural(rejected.length, "signal")} rejected</span>
            )}
            {step?.error === undefined ? null : (
              <span class={toneOf(row)}>{step.error.message}</span>
            )}
          </span>
        </summary>
        <dl class="details">
          <dt>Started</dt>
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
              <dt>Times out</dt>
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
          {rejected.map((rejection) => (
            <>
              <dt>Rejected</dt>
              <dd>{rejection}</dd>
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
      {child === undefined ? null : (
        <div class="line-grid line-child">
          <a href={runHref(child)}>Open child run</a>
        </div>
      )}
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
