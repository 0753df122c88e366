import type { ComponentChildren } from "preact";
import { runHref } from "../../state/router.ts";
import { formatMs, plural } from "../../parts/format.ts";
import { Frames } from "../../parts/frames.tsx";
import { Json } from "../../parts/json.tsx";
import { Status, type Tone } from "../../parts/status.tsx";
import { Clock, Time } from "../../parts/time.tsx";
import { authorText } from "./wait-text.tsx";
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
  const { kind, isOpen } = row;
  return (
    <li>
      <details class="line-row">
        <summary data-row>
          <span class="line-name">
            <Status tone={toneOf(row)}>{shownName(row)}</Status>
            <span class="tag">{kind === "now" ? "clock" : kind}</span>
          </span>
          <Track row={row} line={line} />
          <span class="num right nowrap">
            {row.isPlanned === true ? "" : tookText(row)}
            {isOpen && row.isPlanned !== true ? <span class="dim">+</span> : null}
          </span>
          <RowNotes row={row} />
        </summary>
        <RowDetails row={row} />
      </details>
    </li>
  );
}

function shownName({ kind, name }: TimelineRow): string {
  return kind === "undo" ? name.replace(/^undo:/, "") : name;
}

function tookText({ kind, fromMs, toMs }: TimelineRow): string {
  return kind === "now" || kind === "race" ? "" : formatMs(Math.max(0, toMs - fromMs));
}

/** The bar of a row, and the gap before it in which a worker was lost. */
function Track({ row, line }: { readonly row: TimelineRow; readonly line: Timeline }) {
  const { look, fromMs, toMs, lostMs, isOpen, isPlanned = false } = row;
  const { place, cuts } = line.scale;
  const stretch = (from: number, to: number) => ({
    left: `${place(from) * 100}%`,
    width: `${Math.max(0, place(to) - place(from)) * 100}%`,
  });
  const startMs = fromMs - line.fromMs;
  return (
    <span class="line-track">
      {cuts.map(({ at, width }) => (
        <span key={at} class="cut" style={{ left: `${at * 100}%`, width: `${width * 100}%` }} />
      ))}
      {lostMs === undefined ? null : (
        <span
          class="bar-lost"
          role="img"
          aria-label={`${barTexts.lost} before it, ${formatMs(fromMs - lostMs)}`}
          style={stretch(lostMs, fromMs)}
        />
      )}
      {isPlanned ? null : (
        <span
          class={`bar-${look}`}
          role="img"
          aria-label={`${shownName(row)}: ${barTexts[look]} ${tookText(row)}${isOpen ? " so far" : ""}, started at ${formatMs(Math.max(0, startMs))}`}
          style={stretch(fromMs, toMs)}
        />
      )}
    </span>
  );
}

/** The notes of a collapsed row. */
function RowNotes({ row }: { readonly row: TimelineRow }) {
  const { message, heartbeatAt, lostMs, fromMs, step, look, isPlanned } = row;
  return (
    <span class="line-note">
      {isPlanned === true ? <span class="dim">not undone yet</span> : null}
      <TryNote row={row} />
      {message === undefined ? null : (
        <span class={look === "failed" ? "bad" : "dim"}>{message}</span>
      )}
      {heartbeatAt === undefined ? null : (
        <span class="dim">
          heartbeat <Time at={heartbeatAt} />
        </span>
      )}
      {lostMs === undefined ? null : (
        <span class="warn">
          worker lost; resumed {formatMs(fromMs - lostMs)} after the previous record
        </span>
      )}
      {step?.branch === undefined ? null : <span class="dim">{step.branch} was first</span>}
      {step?.by === undefined ? null : <span class="dim">by {step.by}</span>}
      {step?.skipped === undefined ? null : (
        <span class="warn">skipped {authorText(step.skipped)}</span>
      )}
      {step?.error === undefined ? null : <span class={toneOf(row)}>{step.error.message}</span>}
    </span>
  );
}

/** The number of tries, with the last error of a step that succeeded in the end. */
function TryNote({
  row: { failedTries = 0, maxTries, tries, step },
}: {
  readonly row: TimelineRow;
}) {
  const attempts = step?.attempts ?? 1;
  if (failedTries > 0) {
    return (
      <span class="warn">
        {maxTries === undefined
          ? plural(failedTries, "failed try", "failed tries")
          : `try ${failedTries} of ${maxTries} failed`}
      </span>
    );
  }
  if (attempts < 2) return null;
  const last = step?.error === undefined ? tries?.at(-1) : undefined;
  return (
    <>
      <span class="warn">{plural(attempts, "try", "tries")}</span>
      {last === undefined ? null : <span class="dim">last error: {last.message}</span>}
    </>
  );
}

/** The record of an expanded row. */
function RowDetails({ row }: { readonly row: TimelineRow }) {
  const { kind, fromMs, isOpen, step, until, child, position, tries = [] } = row;
  const error = step?.error;
  return (
    <dl class="details">
      <Detail title="Started">
        <Clock at={new Date(fromMs).toISOString()} />
      </Detail>
      {position === undefined ? null : (
        <Detail title="Called">
          <code>{position}</code>
        </Detail>
      )}
      {child === undefined ? null : (
        <Detail title="Child">
          <a href={runHref(child)}>Open child run</a>
        </Detail>
      )}
      {step === undefined || kind === "sleep" ? null : (
        <Detail title="Recorded">
          <Clock at={step.at} />
        </Detail>
      )}
      {tries.length === 0 ? null : (
        <Detail title="Failed tries">
          <ol class="tries">
            {tries.map(({ attempt, at, code, message }) => (
              <li key={at}>
                <span class="num">{attempt === undefined ? "–" : `#${attempt}`}</span>
                <Clock at={at} />
                <span>
                  <code class="bad">{code}</code> {message}
                </span>
              </li>
            ))}
          </ol>
        </Detail>
      )}
      {until === undefined || !isOpen ? null : (
        <Detail title={kind === "step" || kind === "undo" ? "Next try" : "Times out"}>
          <Time at={until} />
        </Detail>
      )}
      {error === undefined ? null : (
        <Detail title="Error">
          <code>{error.code}</code> {error.message}
          <Frames of={error.frames} />
        </Detail>
      )}
      {step?.value === undefined ? null : (
        <Detail title={kind === "signal" ? "Payload" : "Result"}>
          <Json value={step.value} />
        </Detail>
      )}
    </dl>
  );
}

function Detail({
  title,
  children,
}: {
  readonly title: string;
  readonly children: ComponentChildren;
}) {
  return (
    <>
      <dt>{title}</dt>
      <dd>{children}</dd>
    </>
  );
}

function toneOf({ look, isOpen, kind, step, isPlanned }: TimelineRow): Tone {
  const code = step?.error?.code;
  if (code === "cancelled" || code === "race_lost") return "idle";
  if (code === "wait_timeout") return "warn";
  if (isPlanned === true) return "idle";
  if (look === "failed") return isOpen && kind !== "undo" ? "warn" : "bad";
  if (isOpen)
    return kind === "sleep" || kind === "signal" || kind === "update" || kind === "child"
      ? "wait"
      : "run";
  return "good";
}
